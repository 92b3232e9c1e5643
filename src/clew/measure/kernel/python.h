/* Access to tensors and to the interpreter, without headers of torch or Python.
 *
 * Python code that runs once per step is slow: the step has evicted it from the processor's caches. So what
 * is needed at every step (the loss, an optimizer's gradients, whether a step is like the one before) is read
 * in C, through functions of the interpreter whose addresses Python passes in, and through torch's table of
 * the DLPack standard (its C exchange interface). Python calls them as built-in functions (see
 * compiled_library.py): a call through ctypes takes longer than the work itself.
 */
#include <math.h>
#include <stdint.h>

#if defined(_WIN32)
#define EXPORT __declspec(dllexport)
#else
#define EXPORT __attribute__((visibility("default")))
#endif
#if defined(_MSC_VER)
#define INLINE static __forceinline
#define NOINLINE __declspec(noinline)
#else
#define INLINE static inline __attribute__((always_inline))
#define NOINLINE __attribute__((noinline))
#endif

enum { FLOAT32 = 0, FLOAT64 = 1, BFLOAT16 = 2, FLOAT16 = 3 };

typedef struct {
    void *data;
    struct { int32_t type, id; } device;
    int32_t ndim;
    struct { uint8_t code, bits; uint16_t lanes; } dtype;
    const int64_t *shape, *strides;
    uint64_t offset;
} dl_tensor;

enum { DL_CPU = 1, DL_FLOAT = 2, DL_BFLOAT = 4 };

/* Same layout as `Interpreter` in compiled_library.py. */
typedef struct {
    void *(*attribute)(void *object, void *name);
    int (*set_attribute)(void *object, void *name, void *value);
    void *(*type_of)(void *object);
    void (*release)(void *object); /* accepts NULL */
    void (*keep)(void *object);
    void *(*error)(void);
    void (*forget)(void); /* clears the error */
    void *(*number)(double value);
    double (*as_number)(void *object);
    int64_t (*as_integer)(void *object);
    void *(*call)(void *function);
    void *(*call_with)(void *function, void *argument);
    void *(*call_all)(void *function, ...); /* with these arguments, up to a NULL */
    intptr_t (*tuple_size)(void *tuple);
    void *(*tuple_item)(void *tuple, intptr_t at); /* items are borrowed */
    intptr_t (*list_size)(void *list);
    void *(*list_item)(void *list, intptr_t at);
    intptr_t (*dict_size)(void *dict);
    void *(*dict_item)(void *dict, void *key);
    void *(*frame)(void); /* of the calling function, borrowed */
    unsigned long (*thread)(void);
    void *(*pointer)(void *capsule, const char *name);
    void *(*let_go)(void); /* releases the interpreter's lock */
    void (*take_back)(void *state);
    int (*view)(void *object, dl_tensor *out); /* torch's */
    void *none, *yes, *no, *real, *tensor; /* None, True, False; the classes of floats and of plain tensors */
} interpreter;

extern interpreter python;

/* Same layout as `Request` in gradient_norm.py. */
typedef struct {
    void *name, *kind; /* "grad", or NULL for the parameter itself; and the class that it must be of */
    void *const *parameters;
    const int64_t *counts;
    const uint8_t *dtypes;
    uint64_t *pointers;
    int64_t n;
} request;

EXPORT double clew_sumsq(const uint64_t *pointers, const int64_t *counts, const uint8_t *dtypes, int64_t n);

INLINE void *kept(void *object) {
    python.keep(object);
    return object;
}

INLINE int is_exactly(void *object, void *kind) {
    void *type = python.type_of(object);
    python.release(type);
    return type == kind;
}

/* Whether an object is exactly of this class and in host memory, and where. */
INLINE int look_at(void *object, void *kind, dl_tensor *t) {
    if (!is_exactly(object, kind)) return 0;
    if (python.view(object, t)) {
        python.forget(); /* the error: it is sparse, or has no memory */
        return 0;
    }
    return t->data && t->device.type == DL_CPU && t->dtype.lanes == 1;
}

/* The dtype of its elements, -1 if we do not read it. */
INLINE int kind_of(const dl_tensor *t) {
    int bits = t->dtype.bits;
    if (t->dtype.code == DL_BFLOAT && bits == 16) return BFLOAT16;
    if (t->dtype.code != DL_FLOAT) return -1;
    return bits == 32 ? FLOAT32 : bits == 64 ? FLOAT64 : bits == 16 ? FLOAT16 : -1;
}

INLINE int is_of(const dl_tensor *t, int dtype, int64_t count) {
    if (kind_of(t) != dtype) return 0;
    int64_t dense = 1;
    for (int32_t d = t->ndim - 1; d >= 0; d--) {
        if (t->strides && t->shape[d] != 1 && t->strides[d] != dense) return 0;
        dense *= t->shape[d];
    }
    return dense == count;
}

/* The address of each: 1, or 0 if one is missing or not plain. An error from reading a gradient stays set. */
INLINE int find(const request *r) {
    for (int64_t i = 0; i < r->n; i++) {
        void *found = r->name ? python.attribute(r->parameters[i], r->name) : r->parameters[i];
        if (!found) return 0;
        dl_tensor t = {0};
        int plain = look_at(found, r->kind, &t) && is_of(&t, r->dtypes[i], r->counts[i]);
        if (r->name) python.release(found);
        if (!plain) return 0;
        r->pointers[i] = (uint64_t)(uintptr_t)t.data + t.offset;
    }
    return 1;
}

/* A tensor's single number; 0 if it has several, another dtype, or is on a device. */
INLINE int read_number(void *tensor, double *value) {
    dl_tensor t = {0};
    if (!look_at(tensor, python.tensor, &t)) return 0;
    const void *at = (const char *)t.data + t.offset;
    if (is_of(&t, FLOAT32, 1)) *value = *(const float *)at;
    else if (is_of(&t, FLOAT64, 1)) *value = *(const double *)at;
    else return 0;
    return 1;
}
