/* FMI 3.0 co-simulation and model exchange of a machine: the interface around the generated functions. SI units.
 *
 * Before this file stand: COUNT_* (sizes), AT_* (places in the state), TOKEN, the tables `numbers`, `start` and `side_form`,
 * and the generated functions `run` and `acceleration_of`. Value references: 0 time; then q, v, a (outputs), u (inputs), q0, v0 (start), COUNT_Q or COUNT_U each.
 */
#if defined(_WIN32)
#define EXPORT __declspec(dllexport)
#else
#define EXPORT __attribute__((visibility("default")))
#endif

typedef void *fmi3Instance;
typedef void *fmi3InstanceEnvironment;
typedef void *fmi3FMUState;
typedef uint32_t fmi3ValueReference;
typedef const char *fmi3String;
typedef enum { fmi3OK, fmi3Warning, fmi3Discard, fmi3Error, fmi3Fatal } fmi3Status;
typedef void (*fmi3LogMessageCallback)(fmi3InstanceEnvironment, fmi3Status, fmi3String, fmi3String);
typedef void (*fmi3IntermediateUpdateCallback)(fmi3InstanceEnvironment, double, bool, bool, bool, bool, bool *, double *);

#define FIRST_V (1U + COUNT_Q)
#define FIRST_A (FIRST_V + COUNT_Q)
#define FIRST_U (FIRST_A + COUNT_Q)
#define FIRST_Q0 (FIRST_U + COUNT_U)
#define FIRST_V0 (FIRST_Q0 + COUNT_Q)
#define LAST (FIRST_V0 + COUNT_Q)

typedef struct
{
    double state[COUNT_STATE];
    double numbers[COUNT_NUMBERS];
    double input[COUNT_U];
    double place[COUNT_Q];
    double speed[COUNT_Q];
    double time;
    bool running;
    bool exchange;
} Memory;

typedef struct
{
    Memory now;
    double work[COUNT_WORK];
    double motion[COUNT_MOTION];
    fmi3InstanceEnvironment environment;
    fmi3LogMessageCallback log;
} Robot;

static fmi3Status refuse(const Robot *robot, const char *text)
{
    if ((robot != NULL) && (robot->log != NULL))
    {
        robot->log(robot->environment, fmi3Error, "logStatusError", text);
    }
    return fmi3Error;
}

static void begin(Robot *robot)
{
    (void)memset(&robot->now, 0, sizeof(robot->now));
    (void)memcpy(robot->now.state, start, sizeof(start));
    (void)memcpy(robot->now.numbers, numbers, sizeof(numbers));
    (void)memcpy(robot->now.place, &start[AT_Q], sizeof(robot->now.place));
}

static void place_at_start(Robot *robot)
{
    int i;
    int j;
    (void)memcpy(&robot->now.state[AT_Q], robot->now.place, sizeof(robot->now.place));
    (void)memcpy(&robot->now.state[AT_V], robot->now.speed, sizeof(robot->now.speed));
    for (i = 0; i < COUNT_SIDE; i++)
    {
        double v = 0.0;
        for (j = 0; j < (int)COUNT_Q; j++)
        {
            v += side_form[(i * (int)COUNT_Q) + j] * robot->now.speed[j];
        }
        robot->now.state[AT_SIDE + i] = (double)((v > 0.0) - (v < 0.0));
        robot->now.state[AT_BEGIN + i] = v;
    }
}

/* Accelerations of model exchange, where the solver outside knows the states. */
static void refresh(Robot *robot)
{
    if (robot->now.exchange)
    {
        const double *q = robot->now.running ? &robot->now.state[AT_Q] : robot->now.place;
        const double *v = robot->now.running ? &robot->now.state[AT_V] : robot->now.speed;
        acceleration_of(q, v, robot->now.input, &robot->now.state[AT_A]);
    }
}

static Robot *instance_of(fmi3String token, fmi3InstanceEnvironment environment, fmi3LogMessageCallback log)
{
    Robot *robot = NULL;
    if ((token != NULL) && (strcmp(token, TOKEN) == 0))
    {
        robot = (Robot *)calloc(1U, sizeof(Robot));
    }
    else if (log != NULL)
    {
        log(environment, fmi3Error, "logStatusError", "the instantiation token is that of another robot");
    }
    if (robot != NULL)
    {
        robot->environment = environment;
        robot->log = log;
        begin(robot);
    }
    return robot;
}

/* ---- what is used ---- */

EXPORT const char *fmi3GetVersion(void) { return "3.0"; }

EXPORT fmi3Status fmi3SetDebugLogging(fmi3Instance instance, bool on, size_t n, const fmi3String categories[])
{
    (void)instance; (void)on; (void)n; (void)categories;
    return fmi3OK;
}

EXPORT fmi3Instance fmi3InstantiateCoSimulation(
    fmi3String name, fmi3String token, fmi3String resources, bool visible, bool logging, bool events, bool early,
    const fmi3ValueReference between[], size_t count, fmi3InstanceEnvironment environment, fmi3LogMessageCallback log,
    fmi3IntermediateUpdateCallback update)
{
    (void)name; (void)resources; (void)visible; (void)logging; (void)events; (void)early; (void)between; (void)count; (void)update;
    return instance_of(token, environment, log);
}

EXPORT void fmi3FreeInstance(fmi3Instance instance) { free(instance); }

EXPORT fmi3Status fmi3EnterInitializationMode(
    fmi3Instance instance, bool exact, double tolerance, double first, bool ends, double last)
{
    (void)exact; (void)tolerance; (void)ends; (void)last;
    ((Robot *)instance)->now.time = first;
    return fmi3OK;
}

EXPORT fmi3Status fmi3ExitInitializationMode(fmi3Instance instance)
{
    place_at_start((Robot *)instance);
    ((Robot *)instance)->now.running = true;
    return fmi3OK;
}

EXPORT fmi3Status fmi3Terminate(fmi3Instance instance) { (void)instance; return fmi3OK; }

EXPORT fmi3Status fmi3Reset(fmi3Instance instance)
{
    Robot *robot = (Robot *)instance;
    const bool exchange = robot->now.exchange;
    begin(robot);
    robot->now.exchange = exchange;
    return fmi3OK;
}

static double *variable(Robot *robot, fmi3ValueReference r)
{
    double *found = NULL;
    if (r == 0U) { found = &robot->now.time; }
    else if (r < FIRST_V) { found = robot->now.running ? &robot->now.state[AT_Q + (r - 1U)] : &robot->now.place[r - 1U]; }
    else if (r < FIRST_A) { found = robot->now.running ? &robot->now.state[AT_V + (r - FIRST_V)] : &robot->now.speed[r - FIRST_V]; }
    else if (r < FIRST_U) { found = &robot->now.state[AT_A + (r - FIRST_A)]; }
    else if (r < FIRST_Q0) { found = &robot->now.input[r - FIRST_U]; }
    else if (r < FIRST_V0) { found = &robot->now.place[r - FIRST_Q0]; }
    else if (r < LAST) { found = &robot->now.speed[r - FIRST_V0]; }
    return found;
}

EXPORT fmi3Status fmi3GetFloat64(fmi3Instance instance, const fmi3ValueReference r[], size_t n, double x[], size_t k)
{
    size_t i;
    (void)k;
    refresh((Robot *)instance);
    for (i = 0U; i < n; i++)
    {
        const double *found = variable((Robot *)instance, r[i]);
        if (found == NULL) { return refuse((Robot *)instance, "there is no variable with this value reference"); }
        x[i] = *found;
    }
    return fmi3OK;
}

EXPORT fmi3Status fmi3SetFloat64(fmi3Instance instance, const fmi3ValueReference r[], size_t n, const double x[], size_t k)
{
    size_t i;
    Robot *robot = (Robot *)instance;
    (void)k;
    for (i = 0U; i < n; i++)
    {
        if ((r[i] < FIRST_U) || (r[i] >= LAST)) { return refuse(robot, "only inputs and start values can be set"); }
        if ((r[i] >= FIRST_Q0) && robot->now.running) { return refuse(robot, "start values are set before the simulation"); }
        if (!isfinite(x[i])) { return refuse(robot, "an input or start value is not finite"); }
        *variable(robot, r[i]) = x[i];
    }
    return fmi3OK;
}

EXPORT fmi3Status fmi3DoStep(
    fmi3Instance instance, double now, double length, bool keep, bool *event, bool *end, bool *early, double *last)
{
    Robot *robot = (Robot *)instance;
    double call[COUNT_CALL] = {0.0};
    static const double nothing[COUNT_NOTHING] = {0.0};
    double record[COUNT_RECORD];
    const double steps = fmax(1.0, ceil((length / STEP) - 1.0e-6));
    (void)keep;
    *event = false; *end = false; *early = false; *last = now;
    if (!(length > 0.0)) { return refuse(robot, "the step is not positive"); }
    robot->now.numbers[AT_STEP] = length / steps;
    call[AT_STEPS] = steps;
    call[AT_TABLE_ROWS] = 1.0;
    call[AT_NOISE_ROWS] = 1.0;
    call[AT_PUSH_ROWS] = 1.0;
    call[AT_PUSH_EVERY] = 1.0;
    call[AT_RECORD_EVERY] = 1.0e15;
    call[AT_RECORD_ROWS] = 1.0;
    robot->now.state[AT_COUNTER] = 1.0; /* not a tick of the record */
    run(call, robot->now.state, robot->now.numbers, robot->work, robot->motion, robot->now.input, nothing, nothing, record);
    if (call[AT_STATUS] > 0.0) { return refuse(robot, "the motion became unstable, or the mass matrix is singular"); }
    robot->now.time = now + length;
    *last = robot->now.time;
    return fmi3OK;
}

EXPORT fmi3Status fmi3GetFMUState(fmi3Instance instance, fmi3FMUState *state)
{
    if (*state == NULL) { *state = malloc(sizeof(Memory)); }
    if (*state == NULL) { return fmi3Error; }
    (void)memcpy(*state, &((Robot *)instance)->now, sizeof(Memory));
    return fmi3OK;
}

EXPORT fmi3Status fmi3SetFMUState(fmi3Instance instance, fmi3FMUState state)
{
    (void)memcpy(&((Robot *)instance)->now, state, sizeof(Memory));
    return fmi3OK;
}

EXPORT fmi3Status fmi3FreeFMUState(fmi3Instance instance, fmi3FMUState *state)
{
    (void)instance;
    free(*state);
    *state = NULL;
    return fmi3OK;
}

EXPORT fmi3Status fmi3SerializedFMUStateSize(fmi3Instance instance, fmi3FMUState state, size_t *size)
{
    (void)instance; (void)state;
    *size = sizeof(Memory);
    return fmi3OK;
}

EXPORT fmi3Status fmi3SerializeFMUState(fmi3Instance instance, fmi3FMUState state, uint8_t bytes[], size_t size)
{
    (void)instance;
    if (size != sizeof(Memory)) { return fmi3Error; }
    (void)memcpy(bytes, state, size);
    return fmi3OK;
}

EXPORT fmi3Status fmi3DeserializeFMUState(fmi3Instance instance, const uint8_t bytes[], size_t size, fmi3FMUState *state)
{
    (void)instance;
    if (size != sizeof(Memory)) { return fmi3Error; }
    if (*state == NULL) { *state = malloc(sizeof(Memory)); }
    if (*state == NULL) { return fmi3Error; }
    (void)memcpy(*state, bytes, size);
    return fmi3OK;
}

/* ---- model exchange: states q and v, no events ---- */

EXPORT fmi3Instance fmi3InstantiateModelExchange(
    fmi3String name, fmi3String token, fmi3String resources, bool visible, bool logging, fmi3InstanceEnvironment environment,
    fmi3LogMessageCallback log)
{
    Robot *robot = NULL;
    (void)name; (void)resources; (void)visible; (void)logging;
    if (HAS_EXCHANGE != 0) { robot = instance_of(token, environment, log); }
    if (robot != NULL) { robot->now.exchange = true; }
    return robot;
}

EXPORT fmi3Status fmi3EnterEventMode(fmi3Instance instance) { (void)instance; return fmi3OK; }

EXPORT fmi3Status fmi3EnterContinuousTimeMode(fmi3Instance instance) { (void)instance; return fmi3OK; }

EXPORT fmi3Status fmi3SetTime(fmi3Instance instance, double t) { ((Robot *)instance)->now.time = t; return fmi3OK; }

EXPORT fmi3Status fmi3GetNumberOfContinuousStates(fmi3Instance instance, size_t *n)
{
    *n = ((Robot *)instance)->now.exchange ? (size_t)(2U * COUNT_Q) : 0U;
    return fmi3OK;
}

EXPORT fmi3Status fmi3SetContinuousStates(fmi3Instance instance, const double x[], size_t n)
{
    Robot *robot = (Robot *)instance;
    if (n != (size_t)(2U * COUNT_Q)) { return refuse(robot, "the states are q and v of every coordinate"); }
    (void)memcpy(&robot->now.state[AT_Q], x, sizeof(robot->now.place));
    (void)memcpy(&robot->now.state[AT_V], &x[COUNT_Q], sizeof(robot->now.speed));
    return fmi3OK;
}

EXPORT fmi3Status fmi3GetContinuousStates(fmi3Instance instance, double x[], size_t n)
{
    const Robot *robot = (const Robot *)instance;
    if (n != (size_t)(2U * COUNT_Q)) { return refuse(robot, "the states are q and v of every coordinate"); }
    (void)memcpy(x, robot->now.running ? &robot->now.state[AT_Q] : robot->now.place, sizeof(robot->now.place));
    (void)memcpy(&x[COUNT_Q], robot->now.running ? &robot->now.state[AT_V] : robot->now.speed, sizeof(robot->now.speed));
    return fmi3OK;
}

EXPORT fmi3Status fmi3GetContinuousStateDerivatives(fmi3Instance instance, double x[], size_t n)
{
    Robot *robot = (Robot *)instance;
    if (n != (size_t)(2U * COUNT_Q)) { return refuse(robot, "the states are q and v of every coordinate"); }
    refresh(robot);
    (void)memcpy(x, &robot->now.state[AT_V], sizeof(robot->now.speed));
    (void)memcpy(&x[COUNT_Q], &robot->now.state[AT_A], sizeof(robot->now.speed));
    return fmi3OK;
}

EXPORT fmi3Status fmi3GetNominalsOfContinuousStates(fmi3Instance instance, double x[], size_t n)
{
    size_t i;
    (void)instance;
    for (i = 0U; i < n; i++) { x[i] = 1.0; }
    return fmi3OK;
}

EXPORT fmi3Status fmi3GetEventIndicators(fmi3Instance instance, double x[], size_t n)
{
    (void)instance; (void)x; (void)n;
    return fmi3OK;
}

EXPORT fmi3Status fmi3CompletedIntegratorStep(fmi3Instance instance, bool keep, bool *event, bool *end)
{
    (void)instance; (void)keep;
    *event = false; *end = false;
    return fmi3OK;
}

/* ---- what FMI asks for and this robot does not have: other types, clocks ---- */

#define NO_ACCESS(name) \
    EXPORT fmi3Status name(fmi3Instance i, const fmi3ValueReference r[], size_t n, void *x, size_t k) \
    { (void)r; (void)x; (void)k; return (n == 0U) ? fmi3OK : refuse((Robot *)i, #name ": there is no such variable"); }
#define NO_BINARY(name) \
    EXPORT fmi3Status name(fmi3Instance i, const fmi3ValueReference r[], size_t n, void *s, void *x, size_t k) \
    { (void)r; (void)s; (void)x; (void)k; return (n == 0U) ? fmi3OK : refuse((Robot *)i, #name ": there is no such variable"); }
#define NO_CLOCK(name) \
    EXPORT fmi3Status name(fmi3Instance i, const fmi3ValueReference r[], size_t n, void *x, void *y, void *z) \
    { (void)r; (void)x; (void)y; (void)z; return (n == 0U) ? fmi3OK : refuse((Robot *)i, #name ": there is no clock"); }
#define NO_MODE(name) EXPORT fmi3Status name(fmi3Instance i) { return refuse((Robot *)i, #name " is not supported"); }
#define NO_COUNT(name) \
    EXPORT fmi3Status name(fmi3Instance i, size_t *n) { (void)i; *n = 0U; return fmi3OK; }
#define NO_DERIVATIVE(name) \
    EXPORT fmi3Status name(fmi3Instance i, const fmi3ValueReference u[], size_t nu, const fmi3ValueReference k[], size_t nk, \
        const double *s, size_t ns, double *x, size_t nx) \
    { (void)u; (void)nu; (void)k; (void)nk; (void)s; (void)ns; (void)x; (void)nx; \
      return refuse((Robot *)i, #name " is not supported"); }

NO_ACCESS(fmi3GetFloat32)
NO_ACCESS(fmi3GetInt8)
NO_ACCESS(fmi3GetUInt8)
NO_ACCESS(fmi3GetInt16)
NO_ACCESS(fmi3GetUInt16)
NO_ACCESS(fmi3GetInt32)
NO_ACCESS(fmi3GetUInt32)
NO_ACCESS(fmi3GetInt64)
NO_ACCESS(fmi3GetUInt64)
NO_ACCESS(fmi3GetBoolean)
NO_ACCESS(fmi3GetString)
NO_ACCESS(fmi3SetFloat32)
NO_ACCESS(fmi3SetInt8)
NO_ACCESS(fmi3SetUInt8)
NO_ACCESS(fmi3SetInt16)
NO_ACCESS(fmi3SetUInt16)
NO_ACCESS(fmi3SetInt32)
NO_ACCESS(fmi3SetUInt32)
NO_ACCESS(fmi3SetInt64)
NO_ACCESS(fmi3SetUInt64)
NO_ACCESS(fmi3SetBoolean)
NO_ACCESS(fmi3SetString)
NO_BINARY(fmi3GetBinary)
NO_BINARY(fmi3SetBinary)
NO_CLOCK(fmi3GetClock)
NO_CLOCK(fmi3SetClock)
NO_CLOCK(fmi3GetIntervalDecimal)
NO_CLOCK(fmi3GetIntervalFraction)
NO_CLOCK(fmi3GetShiftDecimal)
NO_CLOCK(fmi3GetShiftFraction)
NO_CLOCK(fmi3SetIntervalDecimal)
NO_CLOCK(fmi3SetIntervalFraction)
NO_CLOCK(fmi3SetShiftDecimal)
NO_CLOCK(fmi3SetShiftFraction)
NO_MODE(fmi3EnterConfigurationMode)
NO_MODE(fmi3ExitConfigurationMode)
NO_MODE(fmi3EvaluateDiscreteStates)
NO_MODE(fmi3EnterStepMode)
NO_COUNT(fmi3GetNumberOfEventIndicators)
NO_DERIVATIVE(fmi3GetDirectionalDerivative)
NO_DERIVATIVE(fmi3GetAdjointDerivative)

EXPORT fmi3Status fmi3UpdateDiscreteStates(
    fmi3Instance i, bool *more, bool *end, bool *nominals, bool *values, bool *next, double *time)
{
    (void)i;
    *more = false; *end = false; *nominals = false; *values = false; *next = false; *time = 0.0;
    return fmi3OK;
}

EXPORT fmi3Status fmi3GetOutputDerivatives(
    fmi3Instance i, const fmi3ValueReference r[], size_t n, const int32_t orders[], double x[], size_t k)
{
    (void)r; (void)n; (void)orders; (void)x; (void)k;
    return refuse((Robot *)i, "fmi3GetOutputDerivatives is not supported");
}

EXPORT fmi3Status fmi3GetNumberOfVariableDependencies(fmi3Instance i, fmi3ValueReference r, size_t *n)
{
    (void)r; (void)n;
    return refuse((Robot *)i, "fmi3GetNumberOfVariableDependencies is not supported");
}

EXPORT fmi3Status fmi3GetVariableDependencies(
    fmi3Instance i, fmi3ValueReference r, size_t a[], fmi3ValueReference b[], size_t c[], int d[], size_t n)
{
    (void)r; (void)a; (void)b; (void)c; (void)d; (void)n;
    return refuse((Robot *)i, "fmi3GetVariableDependencies is not supported");
}

EXPORT fmi3Instance fmi3InstantiateScheduledExecution(
    fmi3String name, fmi3String token, fmi3String resources, bool visible, bool logging, fmi3InstanceEnvironment environment,
    fmi3LogMessageCallback log, void *clock, void *lock, void *unlock)
{
    (void)name; (void)token; (void)resources; (void)visible; (void)logging; (void)environment; (void)log; (void)clock; (void)lock;
    (void)unlock;
    return NULL;
}

EXPORT fmi3Status fmi3ActivateModelPartition(fmi3Instance i, fmi3ValueReference r, double t)
{
    (void)r; (void)t;
    return refuse((Robot *)i, "fmi3ActivateModelPartition is not supported");
}
