/* ---- co-simulation ---- */

EXPORT fmi3Instance fmi3InstantiateCoSimulation(
    fmi3String name, fmi3String token, fmi3String resources, bool visible, bool logging, bool events, bool early,
    const fmi3ValueReference between[], size_t count, fmi3InstanceEnvironment environment, fmi3LogMessageCallback log,
    fmi3IntermediateUpdateCallback update)
{
    (void)name; (void)resources; (void)visible; (void)logging; (void)events; (void)early; (void)between; (void)count; (void)update;
    return instance_of(token, environment, log);
}

static int stretch(Robot *robot, double steps)
{
    Memory *now = &robot->now;
    int status = FINE_RUN;
    while ((steps > 0.0) && (status == FINE_RUN))
    {
        const double passed = fmod(now->state[AT_COUNTER], (double)FINE);
        const double some = (COUNT_ZONES > 0) ? fmin(steps, (double)FINE - passed) : steps;
        status = advance(robot, now->state, some, (double)FINE, (COUNT_ZONES > 0) ? 1.0 : 0.0);
        steps -= some;
        if ((COUNT_ZONES > 0) && (status == FINE_RUN))
        {
            if (!(passed > 0.0)) { add_losses(now, robot->record); }
            if (!(fmod(now->state[AT_COUNTER], (double)STRETCH) > 0.0))
            {
                heat_all(now, now->heat, (double)STRETCH * STEP);
                (void)memset(now->losses, 0, sizeof(now->losses));
                now->rows = 0.0;
                warm(now);
            }
        }
    }
    return status;
}

EXPORT fmi3Status fmi3DoStep(
    fmi3Instance instance, double now, double length, bool keep, bool *event, bool *end, bool *early, double *last)
{
    Robot *robot = (Robot *)instance;
    double steps;
    fmi3Status status;
    (void)keep;
    *event = false; *end = false; *early = false; *last = now;
    if (!(length > 0.0)) { return refuse(robot, "the communication step is not positive"); }
#if DIVISIBLE
    steps = fmax(1.0, ceil((length / STEP) - WHOLE));
    robot->now.numbers[AT_NUMBER_STEP] = length / steps;
#else
    steps = floor((length / STEP) + 0.5);
    if ((steps < 1.0) || (fabs((length / STEP) - steps) > (WHOLE * steps)))
    {
        return refuse_at(robot, "the communication step must be a whole number of the machine's steps of %g s", STEP);
    }
#endif
    status = read_inputs(robot);
    if (status != fmi3OK) { return status; }
    robot->fresh = false;
    robot->now.time = now + length;
    status = verdict(robot, stretch(robot, steps));
    if (status == fmi3OK) { *last = robot->now.time; }
    return status;
}
