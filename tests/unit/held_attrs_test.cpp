#include "preload/python/held_attrs.h"

#include <doctest/doctest.h>

#include <deque>
#include <functional>
#include <map>
#include <random>

using shp::python::HeldAttrs;
using shp::python::PyObject;
using shp::python::Ref;

namespace {

std::function<void()> g_on_death;

void count_up(PyObject* object) {
  ++object->ob_refcnt;
}
void count_down(PyObject* object) {
  if (--object->ob_refcnt == 0 && g_on_death) {
    g_on_death();
  }
}

// Objects that count their references, and no interpreter.
struct Objects {
  Objects() {
    shp::python::py.Py_IncRef = count_up;
    shp::python::py.Py_DecRef = count_down;
  }
  ~Objects() { g_on_death = nullptr; }
  PyObject* make() {
    all.push_back({1, nullptr});
    return &all.back();
  }
  size_t alive() const {
    size_t count = 0;
    for (const PyObject& object : all) {
      count += object.ob_refcnt != 0;
    }
    return count;
  }
  std::deque<PyObject> all;
};

// The library keeps its table until the process ends; a test gives it back.
struct Held : HeldAttrs {
  ~Held() { forget(); }
};

const int kThread = 0;
const int kOther = 0;

}  // namespace

TEST_CASE("attrs are held until their span takes them, once") {
  Objects objects;
  Held held;
  PyObject* attrs = objects.make();
  CHECK(held.empty());
  CHECK(held.put(5, &kThread, Ref(attrs)));
  CHECK(!held.empty());
  CHECK(!held.take(6, &kThread));
  CHECK(held.take(5, &kThread).get() == attrs);
  CHECK(objects.alive() == 0);
  CHECK(!held.take(5, &kThread));
  CHECK(held.empty());
}

TEST_CASE("another thread takes nothing, an id of 0 is an id") {
  Objects objects;
  Held held;
  CHECK(held.put(0, &kThread, Ref(objects.make())));
  CHECK(!held.take(0, &kOther));
  CHECK(held.take(0, &kThread));
}

TEST_CASE("clear drops all, and what dies may call back") {
  Objects objects;
  Held held;
  for (int64_t id = 0; id < 100; ++id) {
    CHECK(held.put(id << 16, &kThread, Ref(objects.make())));
  }
  int late = 0;
  g_on_death = [&] {
    CHECK(!held.take(7 << 16, &kThread));
    if (late++ == 0) {
      CHECK(held.put(1 << 16, &kThread, Ref(objects.make())));
    }
  };
  held.clear();
  CHECK(late == 100);
  CHECK(held.count() == 1);
  g_on_death = nullptr;
  held.clear();
  CHECK(objects.alive() == 0);
}

TEST_CASE("it does what a map does, whatever the order") {
  Objects objects;
  Held held;
  std::map<int64_t, PyObject*> model;
  std::mt19937_64 random(7);
  int64_t next = int64_t{3} << 43;
  for (int step = 0; step < 200'000; ++step) {
    if (model.size() < 300 && random() % 2 == 0) {
      next += 1 << 16;
      const int64_t id = next | static_cast<int64_t>(random() % 120);
      PyObject* attrs = objects.make();
      model[id] = attrs;
      REQUIRE(held.put(id, &kThread, Ref(attrs)));
    } else if (!model.empty()) {
      auto at = model.begin();
      std::advance(at, static_cast<long>(random() % model.size()));
      const Ref got = held.take(at->first, &kThread);
      REQUIRE(got.get() == at->second);
      model.erase(at);
    }
    REQUIRE(held.count() == model.size());
  }
  for (const auto& [id, attrs] : model) {
    REQUIRE(held.take(id, &kThread).get() == attrs);
  }
  CHECK(objects.alive() == 0);
}
