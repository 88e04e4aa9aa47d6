/* FMI 3.0 of a machine: what co-simulation and model exchange share. SI units.
 *
 * Before this file stand: COUNT_* (sizes), AT_* (places in the machine's arrays), TOKEN, tables of numbers, and the generated
 * functions `run` (some steps), `placed` (the state at a start), `setpoint` (a wanted motion as the control law reads it) and
 * `evaluate` (rates, for model exchange) and `whereabouts` (Cartesian coordinates of a block).
 *
 * Value references: 0 time; outputs (signals, temperatures, those of a block); inputs; q0; v0; in model exchange also states, their
 * derivatives and event indicators.
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

#define COUNT_OUT (COUNT_SHOWN + COUNT_ZONES + COUNT_BLOCK)
#define COUNT_HEAT (ORDER * COUNT_ZONES)
#define COUNT_X (COUNT_MOVING + COUNT_HEAT)
#define COUNT_Z (2 * COUNT_JUMPING)
#define FIRST_IN (1 + COUNT_OUT)
#define FIRST_Q0 (FIRST_IN + COUNT_IN)
#define FIRST_V0 (FIRST_Q0 + COUNT_Q)
#define FIRST_X (FIRST_V0 + COUNT_Q)
#define FIRST_RATE (FIRST_X + (HAS_EXCHANGE * COUNT_X))
#define FIRST_Z (FIRST_RATE + (HAS_EXCHANGE * COUNT_X))
#define LAST (FIRST_Z + (HAS_EXCHANGE * COUNT_Z))
#define WHOLE 1.0e-6 /* how far a communication step may be from a whole number of steps, relatively */
#define NEARLY 0.999    /* share of a limit from which on it counts as reached */

enum { FINE_RUN, SINGULAR_MASS, LOST_CLOSURE, UNSTABLE, LOST_TASK };

/* All that is carried from step to step: who has it can go on. */
typedef struct
{
    double state[COUNT_STATE];
    double numbers[COUNT_NUMBERS];
    double input[COUNT_IN];
    double place[2 * COUNT_Q]; /* q0, v0 */
    double pose[COUNT_POSE];   /* of the wanted motion, loops closed */
    double heat[COUNT_HEAT + 1];
    double losses[COUNT_TREE + (2 * COUNT_DRIVES)]; /* of joints and rotors, and squared currents: sums of this stretch */
    double rows;                                    /* how many were added */
    double time;
    bool running;
    bool exchange;
} Memory;

typedef struct
{
    Memory now;
    double out[COUNT_OUT];
    double rate[COUNT_X];
    double indicator[COUNT_Z + 1];
    bool fresh; /* whether they belong to what is set now */
    double trial[COUNT_STATE];
    double table[COUNT_TABLE];
    double record[COUNT_RECORD];
    double work[COUNT_WORK];
    double motion[COUNT_MOTION];
    fmi3InstanceEnvironment environment;
    fmi3LogMessageCallback log;
} Robot;

static const double nothing[COUNT_NOTHING] = {0.0}; /* sensors have no noise, nothing pushes from outside */

static fmi3Status refuse(const Robot *robot, const char *text)
{
    if ((robot != NULL) && (robot->log != NULL))
    {
        robot->log(robot->environment, fmi3Error, "logStatusError", text);
    }
    return fmi3Error;
}

static fmi3Status refuse_at(const Robot *robot, const char *text, double value)
{
    char line[300];
    (void)snprintf(line, sizeof(line), text, value);
    return refuse(robot, line);
}

static fmi3Status verdict(const Robot *robot, int status)
{
    static const char *const reasons[] = {
        "",
        "the mass matrix is singular at t = %g s: a link that moves has no inertia",
        "the loops cannot be closed at t = %g s: out of reach, or too close to a singularity",
        "the motion became unstable at t = %g s: a velocity or a current is beyond 1e6; check gains and the step",
        "the work space does not determine the motion at t = %g s: the robot is too close to a singularity"};
    return (status == FINE_RUN) ? fmi3OK : refuse_at(robot, reasons[status], robot->now.time);
}

/* ---- temperatures: zone_calls[i](y, {W, losses, dt}, after, rate, warm) is a thermal model, warm its T and friction ratio ---- */

static void temperature(int zone, const double *y, double *warm)
{
    const double held[3] = {0.0, 0.0, 0.0};
    double after[ORDER];
    double rate[ORDER];
    zone_calls[zone](y, held, after, rate, warm);
}

/* Cold friction power and electric losses of a zone, from losses of joints, losses of rotors and squared currents. */
static void heated_by(int zone, const double *y, const double *losses, double share, double dt, double *held)
{
    const double *z = &zones[zone * 4];
    const int joint = (int)z[0];
    const int drive = (int)z[1];
    const int motor = (int)z[2];
    double power = 0.0;
    double warm[2];
    temperature(zone, y, warm);
    if (joint >= 0) { power += share * losses[joint]; }
    if (drive >= 0) { power += share * losses[COUNT_TREE + drive]; }
    held[0] = power / warm[1];
    held[1] = (motor >= 0) ? (z[3] * share * losses[COUNT_TREE + COUNT_DRIVES + motor]) : 0.0;
    held[2] = dt;
}

static void heat_all(const Memory *now, double *y, double dt)
{
    int zone;
    for (zone = 0; zone < COUNT_ZONES; zone++)
    {
        double held[3];
        double after[ORDER];
        double rate[ORDER];
        double warmth[2];
        heated_by(zone, &y[zone * ORDER], now->losses, 1.0 / fmax(now->rows, 1.0), dt, held);
        zone_calls[zone](&y[zone * ORDER], held, after, rate, warmth);
        (void)memcpy(&y[zone * ORDER], after, sizeof(after));
    }
}

static void add_losses(Memory *now, const double *record)
{
    int i;
    for (i = 0; i < COUNT_TREE; i++) { now->losses[i] += record[AT_RECORD_JOINT_POWER + i]; }
    for (i = 0; i < COUNT_DRIVES; i++)
    {
        const double current = record[AT_RECORD_CURRENT + i];
        now->losses[COUNT_TREE + i] += record[AT_RECORD_FRICTION + i] * record[AT_RECORD_OMEGA + i];
        now->losses[COUNT_TREE + COUNT_DRIVES + i] += current * current;
    }
    now->rows += 1.0;
}

/* Bring the friction of all owners to the present temperatures. */
static void warm(Memory *now)
{
    int i;
    for (i = 0; i < COUNT_OWNERS; i++)
    {
        if (zone_of[i] >= 0)
        {
            double warmth[2];
            temperature(zone_of[i], &now->heat[zone_of[i] * ORDER], warmth);
            now->numbers[AT_NUMBER_WARM + i] = warmth[1];
            now->numbers[AT_NUMBER_TEMPERATURE + i] = warmth[0];
        }
    }
}

/* ---- start, inputs and outputs ---- */

static void begin(Robot *robot)
{
    (void)memset(&robot->now, 0, sizeof(robot->now));
    (void)memcpy(robot->now.state, start, sizeof(start));
    (void)memcpy(robot->now.numbers, numbers, sizeof(numbers));
    (void)memcpy(robot->now.place, start_place, sizeof(start_place));
    (void)memcpy(robot->now.input, start_input, sizeof(start_input));
    (void)memcpy(robot->now.pose, start_pose, sizeof(start_pose));
    (void)memcpy(robot->now.heat, start_heat, COUNT_HEAT * sizeof(double));
    warm(&robot->now);
    robot->fresh = false;
}

static fmi3Status place_at_start(Robot *robot)
{
    double status = 0.0;
    (void)memcpy(robot->now.state, start, sizeof(start));
    placed(robot->now.state, robot->now.numbers, robot->work, robot->now.place, &status);
    return verdict(robot, (int)status);
}

/* What the control law reads. */
static fmi3Status read_inputs(Robot *robot)
{
    double status = 0.0;
#if DRIVEN
    int i;
    for (i = 0; i < COUNT_IN; i++) { robot->table[i] = input_gain[i] * robot->now.input[i]; }
#else
    setpoint(robot->now.pose, robot->now.input, robot->table, &status);
#endif
    return verdict(robot, (int)status);
}

static int advance(Robot *robot, double *state, double steps, double record_every, double record_rows)
{
    double call[COUNT_CALL] = {0.0};
    call[AT_CALL_STEPS] = steps;
    call[AT_CALL_TABLE_ROWS] = 1.0;
    call[AT_CALL_NOISE_ROWS] = 1.0;
    call[AT_CALL_PUSH_ROWS] = 1.0;
    call[AT_CALL_PUSH_EVERY] = 1.0;
    call[AT_CALL_RECORD] = floor(state[AT_COUNTER] / record_every);
    call[AT_CALL_RECORD_EVERY] = record_every;
    call[AT_CALL_RECORD_ROWS] = record_rows;
    run(call, state, robot->now.numbers, robot->work, robot->motion, robot->table, nothing, nothing, robot->record);
    return (int)call[AT_CALL_STATUS];
}

#if COUNT_BLOCK > 0
/* Cartesian coordinates, then the status: 1 a limit cuts a current or voltage, 2 a coordinate or joint is outside its limits. */
static void locate(const Robot *robot, double *x)
{
    const double *limits = robot->now.numbers;
    double beyond[1];
    bool cut = false;
    int i;
    whereabouts(&robot->now.state[AT_STATE_Q], x, beyond);
    for (i = 0; i < COUNT_DRIVES; i++)
    {
        cut = cut || (fabs(robot->record[AT_RECORD_CURRENT + i]) >= (NEARLY * limits[AT_NUMBER_CURRENT_LIMIT + i]))
            || (fabs(robot->record[AT_RECORD_VOLTAGE + i]) >= (NEARLY * limits[AT_NUMBER_VOLTAGE_LIMIT + i]));
    }
    x[COUNT_BLOCK - 1] = (cut ? 1.0 : 0.0) + ((beyond[0] > 0.0) ? 2.0 : 0.0);
}
#endif

static void show(Robot *robot, double since)
{
    double heat[COUNT_HEAT + 1];
    int i;
    (void)memcpy(heat, robot->now.heat, sizeof(heat));
    if (since > 0.0) { heat_all(&robot->now, heat, since); }
    for (i = 0; i < COUNT_SHOWN; i++) { robot->out[i] = robot->record[shown[i]]; }
    for (i = 0; i < COUNT_ZONES; i++)
    {
        double warmth[2];
        temperature(i, &heat[i * ORDER], warmth);
        robot->out[COUNT_SHOWN + i] = warmth[0];
    }
#if COUNT_BLOCK > 0
    locate(robot, &robot->out[COUNT_SHOWN + COUNT_ZONES]);
#endif
    robot->fresh = true;
}

static fmi3Status rates(Robot *robot);

/* Find the outputs: those that a step from here would record, which is then forgotten. */
static fmi3Status look(Robot *robot)
{
    fmi3Status status = fmi3OK;
    if (robot->fresh) { return fmi3OK; }
    if (!robot->now.running) { status = place_at_start(robot); }
    if (status == fmi3OK) { status = read_inputs(robot); }
    if (status != fmi3OK) { return status; }
    if (robot->now.exchange) { status = rates(robot); }
    else
    {
        int found;
        (void)memcpy(robot->trial, robot->now.state, sizeof(robot->trial));
        found = advance(robot, robot->trial, 1.0, 1.0, 1.0);
        status = verdict(robot, (found == UNSTABLE) ? FINE_RUN : found);
        show(robot, fmod(robot->now.state[AT_COUNTER], (double)STRETCH) * STEP);
    }
    return status;
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

static double *variable(Robot *robot, fmi3ValueReference reference)
{
    const int r = (reference < (fmi3ValueReference)LAST) ? (int)reference : LAST;
    double *found = NULL;
    if (r == 0) { found = &robot->now.time; }
    else if (r < FIRST_IN) { found = &robot->out[r - 1]; }
    else if (r < FIRST_Q0) { found = &robot->now.input[r - FIRST_IN]; }
    else if (r < FIRST_X) { found = &robot->now.place[r - FIRST_Q0]; }
    else if (r < FIRST_RATE)
    {
        const int i = r - FIRST_X;
        found = (i < COUNT_MOVING) ? &robot->now.state[i] : &robot->now.heat[i - COUNT_MOVING];
    }
    else if (r < FIRST_Z) { found = &robot->rate[r - FIRST_RATE]; }
    else if (r < LAST) { found = &robot->indicator[r - FIRST_Z]; }
    return found;
}

EXPORT fmi3Status fmi3GetFloat64(fmi3Instance instance, const fmi3ValueReference r[], size_t n, double x[], size_t k)
{
    Robot *robot = (Robot *)instance;
    size_t i;
    (void)k;
    for (i = 0U; i < n; i++)
    {
        const double *found = variable(robot, r[i]);
        if (found == NULL) { return refuse(robot, "there is no variable with this value reference"); }
        if (((r[i] > 0U) && (r[i] < (fmi3ValueReference)FIRST_IN)) || (r[i] >= (fmi3ValueReference)FIRST_X))
        {
            const fmi3Status status = look(robot);
            if (status != fmi3OK) { return status; }
        }
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
        if ((r[i] < (fmi3ValueReference)FIRST_IN) || (r[i] >= (fmi3ValueReference)FIRST_X))
        {
            return refuse(robot, "only inputs and start values can be set");
        }
        if ((r[i] >= (fmi3ValueReference)FIRST_Q0) && robot->now.running)
        {
            return refuse(robot, "start values are set before the simulation");
        }
        if (!isfinite(x[i])) { return refuse(robot, "an input or start value is not finite"); }
        *variable(robot, r[i]) = x[i];
    }
    robot->fresh = false;
    return fmi3OK;
}

/* ---- life of an instance ---- */

EXPORT const char *fmi3GetVersion(void) { return "3.0"; }

EXPORT fmi3Status fmi3SetDebugLogging(fmi3Instance instance, bool on, size_t n, const fmi3String categories[])
{
    (void)instance; (void)on; (void)n; (void)categories;
    return fmi3OK;
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
    Robot *robot = (Robot *)instance;
    const fmi3Status status = place_at_start(robot);
    robot->now.running = true;
    robot->fresh = false;
    return status;
}

EXPORT fmi3Status fmi3Terminate(fmi3Instance instance) { (void)instance; return fmi3OK; }

EXPORT fmi3Status fmi3Reset(fmi3Instance instance)
{
    Robot *robot = (Robot *)instance;
    const bool exchange = robot->now.exchange;
    const double slack = robot->now.numbers[AT_NUMBER_SLACK];
    begin(robot);
    robot->now.exchange = exchange;
    robot->now.numbers[AT_NUMBER_SLACK] = slack;
    return fmi3OK;
}

/* ---- the state as a whole ---- */

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
    ((Robot *)instance)->fresh = false;
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
    if (size != sizeof(Memory)) { return refuse((Robot *)instance, "the serialized state is that of another robot"); }
    if (*state == NULL) { *state = malloc(sizeof(Memory)); }
    if (*state == NULL) { return fmi3Error; }
    (void)memcpy(*state, bytes, size);
    return fmi3OK;
}
