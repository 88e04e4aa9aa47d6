/* ---- model exchange: the solver outside integrates ----
 *
 * States are all that the machine integrates, then temperatures. Dry friction is exact: every owner of friction slides to one
 * side or sticks, which changes in events. Two indicators per owner: one that slides stops where its speed changes its sign,
 * one that sticks lets go where the force that holds it leaves its levels.
 */

#define CLOSING 100.0  /* rate at which positions are pulled back on closed loops [1/s] */
#define REVERSED 1.0e-9 /* speed beyond zero at which an owner counts as stopped: a start from rest is no stop [rad/s, m/s] */
#define SLACK 1.0e9     /* ranges by which a held force may leave its levels until the solver has found the moment */
#define SPARE 1.0e-9    /* share of its range by which a force leaves its levels before an owner slides */

#if HAS_EXCHANGE
/* The force that holds an owner at rest, beyond its levels too. */
static double holding(const Robot *robot, int o)
{
    return (o < COUNT_BOUND) ? robot->now.state[AT_STATE_HELD + o] : robot->motion[AT_MOTION_HELD + (o - COUNT_BOUND)];
}

static void indicate(Robot *robot)
{
    int o;
    for (o = 0; o < COUNT_JUMPING; o++)
    {
        const double side = robot->now.state[AT_STATE_SIDE + o];
        const double low = robot->motion[AT_MOTION_LOW + o];
        const double high = robot->motion[AT_MOTION_HIGH + o];
        double *z = &robot->indicator[2 * o];
        z[0] = (side * robot->motion[AT_MOTION_NOW + o]) + REVERSED;
        z[1] = 1.0;
        if (!(fabs(side) > 0.0))
        {
            const double force = (high > low) ? holding(robot, o) : (2.0 * high) + 1.0;
            const double spare = SPARE * (high - low);
            z[0] = (high - force) + spare;
            z[1] = (force - low) + spare;
        }
    }
}

static void rates_of_heat(Robot *robot)
{
    Memory *now = &robot->now;
    int zone;
    (void)memset(now->losses, 0, sizeof(now->losses));
    add_losses(now, robot->record);
    for (zone = 0; zone < COUNT_ZONES; zone++)
    {
        const double *y = &now->heat[zone * ORDER];
        double held[3];
        double after[ORDER];
        double warmth[2];
        heated_by(zone, y, now->losses, 1.0, 0.0, held);
        zone_calls[zone](y, held, after, &robot->rate[COUNT_MOVING + (zone * ORDER)], warmth);
    }
}

static fmi3Status rates(Robot *robot)
{
    double call[COUNT_CALL] = {0.0};
    fmi3Status status;
    call[AT_CALL_TABLE_ROWS] = 1.0;
    call[AT_CALL_NOISE_ROWS] = 1.0;
    warm(&robot->now);
    evaluate(call, robot->now.state, robot->now.numbers, robot->work, robot->motion, robot->table, nothing, nothing, robot->record);
    status = verdict(robot, (int)call[AT_CALL_STATUS]);
    (void)memcpy(robot->rate, &robot->work[AT_WORK_RATES], COUNT_MOVING * sizeof(double));
#if HAS_LOOPS
    {
        int i;
        for (i = 0; i < COUNT_FIX; i++) { robot->rate[AT_STATE_Q + i] += CLOSING * robot->motion[AT_MOTION_FIX + i]; }
    }
#endif
    rates_of_heat(robot);
    indicate(robot);
    show(robot, 0.0);
    return status;
}

/* Let owners of friction stop, stick or slide as they must now. */
static fmi3Status settle_sides(Robot *robot)
{
    double *side = &robot->now.state[AT_STATE_SIDE];
    bool changed = true;
    fmi3Status status = look(robot);
    int o;
    int turn;
    for (o = 0; o < COUNT_JUMPING; o++)
    {
        if ((side[o] * robot->motion[AT_MOTION_NOW + o]) <= 0.0) { side[o] = 0.0; }
    }
    for (turn = 0; changed && (status == fmi3OK) && (turn <= COUNT_JUMPING); turn++)
    {
        changed = false;
        robot->fresh = false;
        status = look(robot);
        for (o = 0; o < COUNT_JUMPING; o++)
        {
            if (!(fabs(side[o]) > 0.0))
            {
                if (robot->indicator[2 * o] <= 0.0) { side[o] = 1.0; changed = true; }
                else if (robot->indicator[(2 * o) + 1] <= 0.0) { side[o] = -1.0; changed = true; }
            }
        }
    }
    robot->fresh = false;
    return status;
}
#else
static fmi3Status rates(Robot *robot) { return refuse(robot, "this machine is for co-simulation only"); }
static fmi3Status settle_sides(Robot *robot) { return rates(robot); }
#endif

EXPORT fmi3Instance fmi3InstantiateModelExchange(
    fmi3String name, fmi3String token, fmi3String resources, bool visible, bool logging, fmi3InstanceEnvironment environment,
    fmi3LogMessageCallback log)
{
    Robot *robot = NULL;
    (void)name; (void)resources; (void)visible; (void)logging;
    if (HAS_EXCHANGE != 0) { robot = instance_of(token, environment, log); }
    if (robot != NULL)
    {
        robot->now.exchange = true;
        robot->now.numbers[AT_NUMBER_SLACK] = SLACK;
    }
    return robot;
}

EXPORT fmi3Status fmi3EnterEventMode(fmi3Instance instance) { (void)instance; return fmi3OK; }

EXPORT fmi3Status fmi3EnterContinuousTimeMode(fmi3Instance instance) { (void)instance; return fmi3OK; }

EXPORT fmi3Status fmi3SetTime(fmi3Instance instance, double t) { ((Robot *)instance)->now.time = t; return fmi3OK; }

EXPORT fmi3Status fmi3UpdateDiscreteStates(
    fmi3Instance instance, bool *more, bool *end, bool *nominals, bool *values, bool *next, double *time)
{
    *more = false; *end = false; *nominals = false; *values = false; *next = false; *time = 0.0;
    return ((Robot *)instance)->now.exchange ? settle_sides((Robot *)instance) : fmi3OK;
}

EXPORT fmi3Status fmi3GetNumberOfContinuousStates(fmi3Instance instance, size_t *n)
{
    *n = ((Robot *)instance)->now.exchange ? (size_t)COUNT_X : 0U;
    return fmi3OK;
}

EXPORT fmi3Status fmi3GetNumberOfEventIndicators(fmi3Instance instance, size_t *n)
{
    *n = ((Robot *)instance)->now.exchange ? (size_t)COUNT_Z : 0U;
    return fmi3OK;
}

EXPORT fmi3Status fmi3SetContinuousStates(fmi3Instance instance, const double x[], size_t n)
{
    Robot *robot = (Robot *)instance;
    if (n != (size_t)COUNT_X) { return refuse(robot, "this is another number of states than the machine has"); }
    (void)memcpy(robot->now.state, x, COUNT_MOVING * sizeof(double));
    (void)memcpy(robot->now.heat, &x[COUNT_MOVING], COUNT_HEAT * sizeof(double));
    robot->fresh = false;
    return fmi3OK;
}

EXPORT fmi3Status fmi3GetContinuousStates(fmi3Instance instance, double x[], size_t n)
{
    const Robot *robot = (const Robot *)instance;
    if (n != (size_t)COUNT_X) { return refuse(robot, "this is another number of states than the machine has"); }
    (void)memcpy(x, robot->now.state, COUNT_MOVING * sizeof(double));
    (void)memcpy(&x[COUNT_MOVING], robot->now.heat, COUNT_HEAT * sizeof(double));
    return fmi3OK;
}

EXPORT fmi3Status fmi3GetContinuousStateDerivatives(fmi3Instance instance, double x[], size_t n)
{
    Robot *robot = (Robot *)instance;
    fmi3Status status;
    if (n != (size_t)COUNT_X) { return refuse(robot, "this is another number of states than the machine has"); }
    status = look(robot);
    (void)memcpy(x, robot->rate, sizeof(robot->rate));
    return status;
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
    Robot *robot = (Robot *)instance;
    fmi3Status status;
    if (n != (size_t)COUNT_Z) { return refuse(robot, "this is another number of event indicators than the machine has"); }
    status = look(robot);
    (void)memcpy(x, robot->indicator, n * sizeof(double));
    return status;
}

EXPORT fmi3Status fmi3CompletedIntegratorStep(fmi3Instance instance, bool keep, bool *event, bool *end)
{
    (void)instance; (void)keep;
    *event = false; *end = false;
    return fmi3OK;
}

