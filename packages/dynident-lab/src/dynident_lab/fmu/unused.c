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
#define NO_DERIVATIVE(name) \
    EXPORT fmi3Status name(fmi3Instance i, const fmi3ValueReference u[], size_t nu, const fmi3ValueReference k[], size_t nk, \
        const double *s, size_t ns, double *x, size_t nx) \
    { (void)u; (void)nu; (void)k; (void)nk; (void)s; (void)ns; (void)x; (void)nx; \
      return refuse((Robot *)i, #name " is not supported"); }

#define NO_TYPE(type) NO_ACCESS(fmi3Get##type) NO_ACCESS(fmi3Set##type)
#define NO_INTERVAL(type) NO_CLOCK(fmi3GetInterval##type) NO_CLOCK(fmi3SetInterval##type)
#define NO_SHIFT(type) NO_CLOCK(fmi3GetShift##type) NO_CLOCK(fmi3SetShift##type)

NO_TYPE(Float32) NO_TYPE(Boolean) NO_TYPE(String)
NO_TYPE(Int8) NO_TYPE(Int16) NO_TYPE(Int32) NO_TYPE(Int64)
NO_TYPE(UInt8) NO_TYPE(UInt16) NO_TYPE(UInt32) NO_TYPE(UInt64)
NO_BINARY(fmi3GetBinary) NO_BINARY(fmi3SetBinary)
NO_CLOCK(fmi3GetClock) NO_CLOCK(fmi3SetClock)
NO_INTERVAL(Decimal) NO_INTERVAL(Fraction)
NO_SHIFT(Decimal) NO_SHIFT(Fraction)
NO_MODE(fmi3EnterConfigurationMode) NO_MODE(fmi3ExitConfigurationMode)
NO_MODE(fmi3EvaluateDiscreteStates) NO_MODE(fmi3EnterStepMode)
NO_DERIVATIVE(fmi3GetDirectionalDerivative) NO_DERIVATIVE(fmi3GetAdjointDerivative)

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
