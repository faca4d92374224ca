#include "cli/trace/layout.h"

#include <doctest/doctest.h>

using namespace shp;

TEST_CASE("nested, disjoint and touching spans share a row") {
  RowStack row;
  CHECK(row.fits(0, 100));
  CHECK(row.fits(10, 50));
  CHECK(row.fits(10, 50));
  CHECK(row.fits(20, 20));
  CHECK(row.fits(50, 100));
  CHECK(row.fits(100, 120));
  CHECK(row.fits(200, 210));
}

TEST_CASE("a span that reaches out of the one around it has no place") {
  RowStack row;
  CHECK(row.fits(0, 100));
  CHECK(row.fits(10, 50));
  CHECK_FALSE(row.fits(40, 60));
  CHECK(row.fits(45, 50));
  CHECK(row.fits(50, 90));
  CHECK_FALSE(row.fits(90, 101));
}

TEST_CASE("rows are not nested deeper than viewers show") {
  RowStack row;
  int placed = 0;
  for (int i = 0; i < 600; ++i) {
    placed += row.fits(i, 10'000 - i) ? 1 : 0;
  }
  CHECK(placed == 500);
}

TEST_CASE("a row number is free, in range and not the pid") {
  TidChooser chooser(7);
  chooser.take(8);
  CHECK(chooser.choose(6) == 6);
  CHECK(chooser.choose(6) == 9);
  CHECK(chooser.choose(0) == kRowBase);
  CHECK(chooser.choose(-5) == kRowBase + 1);
  CHECK(chooser.choose(0xffff'ffff) == 0xffff'ffff);
  CHECK(chooser.choose(0xffff'ffff) == 1);
  CHECK(chooser.choose(0x1'0000'0000) == kRowBase + 2);
}

TEST_CASE("an export may use the pid as a row, which is the main thread") {
  TidChooser chooser(TidChooser::kAnyPid);
  CHECK(chooser.choose(7) == 7);
}

TEST_CASE("rounding to a grain keeps the order and goes half up") {
  CHECK(to_grain(123, 1) == 123);
  CHECK(to_grain(124, 250) == 0);
  CHECK(to_grain(125, 250) == 250);
  CHECK(to_grain(374, 250) == 250);
  CHECK(to_grain(375, 250) == 500);
  CHECK(to_grain(-125, 250) == 0);
  CHECK(to_grain(-126, 250) == -250);
}
