/* Usual steps, noted without Python: one model runs on one batch, one loss goes backward, one optimizer steps.
 *
 * The seams of such a step (attach/usual.py) ask here whether it still is one, and what is known of it becomes
 * a row. "Usual" is narrow on purpose: whatever is another model, mode, line or kind of argument than in the
 * steps before gets the answer False, and Python looks at it. Nothing here raises; an error is forgotten, and
 * the answer is False again.
 */
#include "python.h"

#include <string.h>

/* What has happened in a step, in order, as digits of a number: room for what the step itself still needs. */
enum { DATA = 1, FORWARD = 2, BACKWARD = 3, STEP = 4, BASE = 16, MOST_OTHERS = 8 };
/* As plain_writing.py reads it; the first eight are what `StepClock.write` takes. */
enum { NOW, OWN, WAITING, RUNNING, DERIVING, UPDATING, SIZE, EVENTS, LOSS, NORM, RATE, COLUMNS };

/* As `Steps` in usual.py has it. */
typedef struct {
    /* What makes a step a usual one: */
    void *model, *optimizer; /* weak references */
    void *caller;            /* the code that calls `backward()`, */
    int64_t at;              /* and where in it */
    const request *gradients;
    uint64_t thread;
    /* Until when they are noted: */
    double latest;
    int64_t most;
    double *rows;
    /* What is asked, and by which names: */
    void *clock, *grad_enabled, *tracing, *transforming, *is_neg, *method;
    void *training, *grad_fn, *version_of, *f_back, *f_code, *f_lasti, *param_groups, *lr, *delivered;
    void *holding; /* lets go of the delivered batch when a step ends */
    /* Where we are: */
    int64_t active, steps, doing, others, forwards, backwards, batches;
    double began, asked;
    double row[COLUMNS]; /* of the step that is open */
    void *args;          /* that the model was called with, */
    int64_t version;     /* and how often the tensor among them had been written to */
} steps;

static void *say(void *answer) {
    if (python.error()) python.forget();
    return kept(answer);
}

static double now(const steps *s) {
    void *made = python.call(s->clock);
    double value = made ? python.as_number(made) : 0.0;
    python.release(made);
    return value;
}

static int gives(void *function, void *wanted) {
    void *made = python.call(function);
    python.release(made);
    return made == wanted;
}

static int has(void *object, void *name, void *wanted) {
    void *found = python.attribute(object, name);
    python.release(found);
    return found == wanted;
}

static void happened(steps *s, int what) { s->row[EVENTS] = s->row[EVENTS] * BASE + what; }

/* Begin an open step anew. What was held is let go of last: a destructor may run anything. */
static void begin(steps *s) {
    void *args = s->args;
    memset(s->row, 0, sizeof s->row);
    s->doing = s->others = s->forwards = s->backwards = s->batches = 0;
    s->args = NULL;
    python.release(args);
}

static int is_noting(const steps *s) { return s && s->active && python.thread() == s->thread; }

/* enter(model, args, kwargs) -> True: it is noted, and `leave` follows; None: a part of what is noted, or of
 * another thread */
EXPORT void *clew_enter(void *self, void *const *given, intptr_t n) {
    steps *s = python.pointer(self, "clew");
    if (!s || !s->active || n != 3) return say(python.no);
    if (!is_noting(s) || s->doing == FORWARD || s->doing == BACKWARD) return say(python.none);
    void *model = given[0], *args = given[1], *kwargs = given[2];
    if (s->doing || s->args || python.tuple_size(args) != 1 || python.dict_size(kwargs)) return say(python.no);
    void *first = python.tuple_item(args, 0);
    dl_tensor t = {0};
    if (!gives(s->model, model) || !has(model, s->training, python.yes) || !gives(s->grad_enabled, python.yes) ||
        !gives(s->tracing, python.none) || !gives(s->transforming, python.none) ||
        !look_at(first, python.tensor, &t) || !has(first, s->grad_fn, python.none))
        return say(python.no);
    void *version = python.attribute(first, s->version_of); /* an inference tensor has none */
    s->version = version ? python.as_integer(version) : -1;
    python.release(version);
    s->row[SIZE] = t.ndim ? (double)t.shape[0] : 0.0;
    s->args = kept(args);
    s->doing = FORWARD;
    s->began = now(s);
    return say(python.yes);
}

/* leave() -> True; False if what was entered is Python's business by now */
EXPORT void *clew_leave(void *self, void *nothing) {
    (void)nothing;
    steps *s = python.pointer(self, "clew");
    if (!s || s->doing != FORWARD) return say(python.no);
    s->row[RUNNING] = now(s) - s->began;
    s->doing = 0;
    s->forwards = 1;
    happened(s, FORWARD);
    return say(python.yes);
}

/* Whether `Tensor.backward` was called from the same place as in the steps before. */
static int is_called_from_there(const steps *s) {
    void *wrapper = python.frame();
    void *above = wrapper ? python.attribute(wrapper, s->f_back) : NULL;
    void *caller = above && has(above, s->f_code, s->method) ? python.attribute(above, s->f_back) : NULL;
    int same = caller && has(caller, s->f_code, s->caller);
    void *at = same ? python.attribute(caller, s->f_lasti) : NULL;
    same = at && python.as_integer(at) == s->at;
    python.release(at);
    python.release(caller);
    python.release(above);
    return same;
}

/* derive(loss) -> as `enter`, of `backward()`; `derived` follows */
EXPORT void *clew_derive(void *self, void *tensor) {
    steps *s = python.pointer(self, "clew");
    if (!s || !s->active) return say(python.no);
    if (!is_noting(s) || s->doing == BACKWARD) return say(python.none);
    double value;
    if (s->doing || !s->forwards || s->backwards || !read_number(tensor, &value) || !isfinite(value))
        return say(python.no);
    void *negated = python.call_with(s->is_neg, tensor); /* memory does not show that a view is */
    python.release(negated);
    if (negated != python.no || !is_called_from_there(s)) return say(python.no);
    s->row[LOSS] = value;
    s->doing = BACKWARD;
    s->began = now(s);
    return say(python.yes);
}

/* derived() -> as `leave` */
EXPORT void *clew_derived(void *self, void *nothing) {
    (void)nothing;
    steps *s = python.pointer(self, "clew");
    if (!s || s->doing != BACKWARD) return say(python.no);
    s->row[DERIVING] = now(s) - s->began;
    s->doing = 0;
    s->backwards = 1;
    happened(s, BACKWARD);
    return say(python.yes);
}

/* The rate of the only group of parameters. */
static int read_rate(const steps *s, void *optimizer, double *rate) {
    void *groups = python.attribute(optimizer, s->param_groups);
    void *group = groups && python.list_size(groups) == 1 ? python.list_item(groups, 0) : NULL;
    void *found = group ? python.dict_item(group, s->lr) : NULL;
    int plain = found && is_exactly(found, python.real);
    if (plain) *rate = python.as_number(found);
    python.release(groups);
    return plain;
}

/* update(optimizer, args, kwargs) -> as `enter`, of `step()`, whose gradients are finite; `updated` follows */
EXPORT void *clew_update(void *self, void *const *given, intptr_t n) {
    steps *s = python.pointer(self, "clew");
    if (n != 3 || !is_noting(s) || s->doing || !s->backwards) return say(python.no);
    s->asked = now(s);
    if (python.tuple_size(given[1]) != 1 || python.dict_size(given[2]) || !gives(s->optimizer, given[0]) ||
        !read_rate(s, given[0], &s->row[RATE]) || !find(s->gradients))
        return say(python.no);
    const request *r = s->gradients;
    double norm = sqrt(clew_sumsq(r->pointers, r->counts, r->dtypes, r->n));
    if (!isfinite(norm)) return say(python.no);
    s->row[NORM] = norm;
    s->doing = STEP;
    s->began = now(s);
    s->row[OWN] = s->began - s->asked;
    return say(python.yes);
}

/* updated(optimizer) -> the step is over and noted: True if the rows must be written now. None if `update` was
 * not the last word on it. */
EXPORT void *clew_updated(void *self, void *optimizer) {
    steps *s = python.pointer(self, "clew");
    if (!s || s->doing != STEP || python.thread() != s->thread) return say(python.none);
    s->row[NOW] = now(s);
    s->row[UPDATING] = s->row[NOW] - s->began;
    read_rate(s, optimizer, &s->row[RATE]); /* as it is after the step, like everywhere */
    happened(s, STEP);
    memcpy(s->rows + s->steps++ * COLUMNS, s->row, sizeof s->row);
    int due = s->steps >= s->most || s->row[NOW] >= s->latest;
    if (s->batches) python.set_attribute(s->holding, s->delivered, python.none);
    begin(s);
    return say(due ? python.yes : python.no);
}

/* mark(number) -> something else happened, of this number; False: Python must note it */
EXPORT void *clew_mark(void *self, void *number) {
    steps *s = python.pointer(self, "clew");
    if (!is_noting(s) || s->others >= MOST_OTHERS) return say(python.no);
    s->others++;
    happened(s, (int)python.as_integer(number));
    return say(python.yes);
}

/* waited(seconds) -> as `mark`: a batch was delivered */
EXPORT void *clew_waited(void *self, void *seconds) {
    steps *s = python.pointer(self, "clew");
    if (!is_noting(s) || s->others >= MOST_OTHERS) return say(python.no);
    s->others++;
    s->batches++;
    s->row[WAITING] += python.as_number(seconds);
    happened(s, DATA);
    return say(python.yes);
}

/* forget() -> None: no step is open, none is noted, and none will be */
EXPORT void *clew_forget(void *self, void *nothing) {
    (void)nothing;
    steps *s = python.pointer(self, "clew");
    if (s) {
        s->active = s->steps = 0;
        begin(s);
    }
    return say(python.none);
}
