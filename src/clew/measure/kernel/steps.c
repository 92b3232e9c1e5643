/* Light steps, noted without Python: one model runs on one batch, one loss goes backward, one optimizer steps.
 *
 * These functions replace the methods of the light recorder (hooks/steps/light_recorder.py): the seams call
 * them by the same names, with the same arguments. Each checks whether the step is still like the ones
 * before, and notes what happened in a row of numbers. If it is not, or if no steps are being noted here, it
 * calls the recorder's own method and returns its result: the seams can't tell the two apart. "Like the ones
 * before" is narrow on purpose: another model, mode, line or kind of argument is left to Python. Nothing here
 * raises, except what that method raises.
 */
#include "python.h"

#include <string.h>

/* What has happened in a step, in order, as digits of a number: room for what the step itself still needs. */
enum { DATA = 1, FORWARD = 2, BACKWARD = 3, STEP = 4, ZEROED = 5, SCHEDULER = 6, BASE = 16, MOST_OTHERS = 8 };
/* As `StepColumn` in step_clock.py has it. */
enum { NOW, OWN, WAITING, RUNNING, DERIVING, UPDATING, SIZE, EVENTS, LOSS, NORM, RATE, COLUMNS };

/* Same layout as `Steps` in native_steps.py. */
typedef struct {
    /* What makes a step like the ones before: */
    void *model, *optimizer; /* weak references */
    void *caller;            /* the code that calls `backward()`, */
    int64_t at;              /* and where in it */
    const request *gradients;
    uint64_t thread;
    /* Until when they are noted: */
    double latest;
    int64_t most;
    double *rows;
    int64_t room; /* for this many rows */
    /* What is read, and by which names: */
    void *clock, *grad_enabled, *tracing, *transforming, *is_neg, *method;
    void *training, *grad_fn, *version_of, *f_back, *f_code, *f_lasti, *param_groups, *lr, *delivered;
    /* The methods of the recorder: */
    void *batch_delivered, *forward_entered, *forward_left, *backward_entered, *backward_left;
    void *update_entered, *update_left, *gradients_zeroed, *scheduler_stepped;
    void *round_off, *count_scheduler;
    void *replay_inputs; /* releases the delivered batch when a step ends */
    /* Where we are: */
    int64_t active, steps, doing, others, forwards, backwards, batches;
    int64_t inner; /* a step called by the optimizer's own step is running: it does not count as one */
    double began, asked;
    double row[COLUMNS]; /* of the step that is open */
    void *args;          /* that the model was called with, */
    int64_t version;     /* and how often the tensor among them had been written to */
} steps;

static void clear_error(void) {
    if (python.error()) python.forget();
}

static void *say(void *answer) {
    clear_error();
    return kept(answer);
}

/* The recorder's own method, with these arguments. */
#define PASS_ON(method, ...) (clear_error(), python.call_all(method, __VA_ARGS__, NULL))

static steps *steps_of(void *self) { return python.pointer(self, "clew"); }

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

/* Start the open step again. What was held is released last: a destructor may run any code. */
static void begin(steps *s) {
    void *args = s->args;
    memset(s->row, 0, sizeof s->row);
    s->doing = s->others = s->forwards = s->backwards = s->batches = 0;
    s->args = NULL;
    python.release(args);
}

static int is_here(const steps *s) { return python.thread() == s->thread; }

static int is_noting(const steps *s) { return s->active && is_here(s); }

/* Whether a row is left, and a digit for events besides forward, backward and step. */
static int has_room(const steps *s) { return s->steps < s->room; }

static int has_digits(const steps *s) { return s->others < MOST_OTHERS; }

/* Whether a call of a model is like the calls before: then its argument is held. */
static int is_forward(steps *s, void *model, void *args, void *kwargs) {
    if (s->doing || s->args || python.tuple_size(args) != 1 || python.dict_size(kwargs)) return 0;
    void *first = python.tuple_item(args, 0);
    dl_tensor t = {0};
    if (!gives(s->model, model) || !has(model, s->training, python.yes) || !gives(s->grad_enabled, python.yes) ||
        !gives(s->tracing, python.none) || !gives(s->transforming, python.none) ||
        !look_at(first, python.tensor, &t) || !has(first, s->grad_fn, python.none))
        return 0;
    void *version = python.attribute(first, s->version_of); /* an inference tensor has none */
    s->version = version ? python.as_integer(version) : -1;
    python.release(version);
    s->row[SIZE] = t.ndim ? (double)t.shape[0] : 0.0;
    s->args = kept(args);
    return 1;
}

/* forward_entered(model, args, kwargs) -> whether `forward_left` is to follow */
EXPORT void *clew_forward_entered(void *self, void *const *given, intptr_t n) {
    steps *s = steps_of(self);
    if (!s || n != 3) return say(python.no);
    if (s->active) {
        if (!is_here(s) || s->doing == FORWARD || s->doing == BACKWARD) return say(python.no); /* a part of it */
        if (is_forward(s, given[0], given[1], given[2])) {
            s->doing = FORWARD;
            s->began = now(s);
            return say(python.yes);
        }
    }
    return PASS_ON(s->forward_entered, given[0], given[1], given[2]);
}

/* forward_left(model, args, kwargs, output) */
EXPORT void *clew_forward_left(void *self, void *const *given, intptr_t n) {
    steps *s = steps_of(self);
    if (!s || n != 4) return say(python.none);
    if (s->doing != FORWARD) return PASS_ON(s->forward_left, given[0], given[1], given[2], given[3]);
    s->row[RUNNING] = now(s) - s->began;
    s->doing = 0;
    s->forwards = 1;
    happened(s, FORWARD);
    return say(python.none);
}

/* loss_entered() -> whether `loss_called` is to follow: in evaluation only */
EXPORT void *clew_loss_entered(void *self, void *nothing) {
    (void)nothing;
    steps *s = steps_of(self);
    return say(s && !gives(s->grad_enabled, python.yes) ? python.yes : python.no);
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

/* Whether this is the loss of the forward that was noted, and a single number. */
static int is_backward(steps *s, void *tensor) {
    double value;
    if (s->doing || !s->forwards || s->backwards || !read_number(tensor, &value) || !isfinite(value)) return 0;
    void *negated = python.call_with(s->is_neg, tensor); /* memory does not show that a view is */
    python.release(negated);
    if (negated != python.no || !is_called_from_there(s)) return 0;
    s->row[LOSS] = value;
    return 1;
}

/* backward_entered(loss) -> whether `backward_left` is to follow */
EXPORT void *clew_backward_entered(void *self, void *tensor) {
    steps *s = steps_of(self);
    if (!s) return say(python.no);
    if (s->active) {
        if (!is_here(s) || s->doing == BACKWARD) return say(python.no);
        if (is_backward(s, tensor)) {
            s->doing = BACKWARD;
            s->began = now(s);
            return say(python.yes);
        }
    }
    return PASS_ON(s->backward_entered, tensor);
}

/* backward_left() */
EXPORT void *clew_backward_left(void *self, void *nothing) {
    (void)nothing;
    steps *s = steps_of(self);
    if (!s) return say(python.none);
    if (s->doing != BACKWARD) return clear_error(), python.call(s->backward_left);
    s->row[DERIVING] = now(s) - s->began;
    s->doing = 0;
    s->backwards = 1;
    happened(s, BACKWARD);
    return say(python.none);
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

/* Whether the optimizer steps on gradients that are finite, of the backward that was noted. */
static int is_update(steps *s, void *optimizer, void *args, void *kwargs) {
    if (s->doing || !s->backwards || !has_room(s)) return 0;
    s->asked = now(s);
    if (python.tuple_size(args) != 1 || python.dict_size(kwargs) || !gives(s->optimizer, optimizer) ||
        !read_rate(s, optimizer, &s->row[RATE]) || !find(s->gradients))
        return 0;
    const request *r = s->gradients;
    s->row[NORM] = sqrt(clew_sumsq(r->pointers, r->counts, r->dtypes, r->n));
    return isfinite(s->row[NORM]);
}

/* update_entered(optimizer, args, kwargs) */
EXPORT void *clew_update_entered(void *self, void *const *given, intptr_t n) {
    steps *s = steps_of(self);
    if (!s || n != 3) return say(python.none);
    if (!is_noting(s) || !is_update(s, given[0], given[1], given[2]))
        return PASS_ON(s->update_entered, given[0], given[1], given[2]);
    s->doing = STEP;
    s->inner = 0; /* if one was running, it has raised */
    s->began = now(s);
    s->row[OWN] = s->began - s->asked;
    return say(python.none);
}

/* update_left(optimizer, args, kwargs): the step is over and noted; now and then the rows have to be written */
EXPORT void *clew_update_left(void *self, void *const *given, intptr_t n) {
    steps *s = steps_of(self);
    if (!s || n != 3) return say(python.none);
    if (s->doing != STEP || s->inner || !is_here(s) || !has_room(s))
        return PASS_ON(s->update_left, given[0], given[1], given[2]);
    s->row[NOW] = now(s);
    s->row[UPDATING] = s->row[NOW] - s->began;
    read_rate(s, given[0], &s->row[RATE]); /* as it is after the step, as in all records */
    happened(s, STEP);
    memcpy(s->rows + s->steps++ * COLUMNS, s->row, sizeof s->row);
    int due = s->steps >= s->most || s->row[NOW] >= s->latest;
    if (s->batches) python.set_attribute(s->replay_inputs, s->delivered, python.none);
    begin(s);
    clear_error();
    return due ? python.call(s->round_off) : say(python.none);
}

/* gradients_zeroed() */
EXPORT void *clew_gradients_zeroed(void *self, void *nothing) {
    (void)nothing;
    steps *s = steps_of(self);
    if (!s) return say(python.none);
    if (!is_noting(s) || !has_digits(s)) return clear_error(), python.call(s->gradients_zeroed);
    s->others++;
    happened(s, ZEROED);
    return say(python.none);
}

/* scheduler_stepped(scheduler) */
EXPORT void *clew_scheduler_stepped(void *self, void *scheduler) {
    steps *s = steps_of(self);
    if (!s) return say(python.none);
    if (!is_noting(s) || !has_digits(s)) return PASS_ON(s->scheduler_stepped, scheduler);
    s->others++;
    happened(s, SCHEDULER);
    return PASS_ON(s->count_scheduler, scheduler);
}

/* batch_delivered(seconds, batch) */
EXPORT void *clew_batch_delivered(void *self, void *const *given, intptr_t n) {
    steps *s = steps_of(self);
    if (!s || n != 2) return say(python.none);
    if (!is_noting(s) || !has_digits(s) || !gives(s->grad_enabled, python.yes))
        return PASS_ON(s->batch_delivered, given[0], given[1]);
    s->others++;
    s->batches++;
    s->row[WAITING] += python.as_number(given[0]);
    happened(s, DATA);
    python.set_attribute(s->replay_inputs, s->delivered, given[1]);
    return say(python.none);
}

/* forget(): discards the open step; no more steps are noted */
EXPORT void *clew_forget(void *self, void *nothing) {
    (void)nothing;
    steps *s = steps_of(self);
    if (s) {
        s->active = s->steps = 0;
        begin(s);
    }
    return say(python.none);
}
