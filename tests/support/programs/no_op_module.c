/* What two calls cost by themselves: the baseline of benches that
 * compile this for the Python at hand. Arguments are taken and not looked at.
 */
#include <Python.h>

static PyObject* nothing(PyObject* module,
                         PyObject* const* args,
                         Py_ssize_t count) {
  (void)module;
  (void)args;
  (void)count;
  Py_RETURN_NONE;
}

static PyMethodDef g_methods[] = {
    {"start", (PyCFunction)(void (*)(void))nothing, METH_FASTCALL, NULL},
    {"end", (PyCFunction)(void (*)(void))nothing, METH_FASTCALL, NULL},
    {NULL, NULL, 0, NULL}};

static struct PyModuleDef g_module = {PyModuleDef_HEAD_INIT,
                                      "no_op",
                                      NULL,
                                      -1,
                                      g_methods,
                                      NULL,
                                      NULL,
                                      NULL,
                                      NULL};

PyMODINIT_FUNC PyInit_no_op(void) {
  return PyModule_Create(&g_module);
}
