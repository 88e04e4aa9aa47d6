/* ---- temperatures: dy/dt = (A0 + W A1) y + b0 + W b1 + losses b2, see `_thermal` ---- */

#define ZONE_A1 (ORDER * ORDER)
#define ZONE_B0 (2 * ORDER * ORDER)
#define ZONE_READ (ZONE_B0 + (3 * ORDER))
#define ZONE_BASE (ZONE_READ + ORDER)

static double temperature(int zone, const double *y)
{
    const double *z = &zones[zone * ZONE];
    double T = z[ZONE_BASE];
    int i;
    for (i = 0; i < ORDER; i++) { T += z[ZONE_READ + i] * y[i]; }
    return T;
}

static double ratio_at(int zone, double T)
{
    const double *z = &zones[zone * ZONE];
    return fmax(COLDEST, (z[ZONE_BASE + 1] * T) + z[ZONE_BASE + 2]);
}

static void heat_rate(int zone, double W, double losses, double drive, const double *x, double *rate)
{
    const double *z = &zones[zone * ZONE];
    int i;
    int j;
    for (i = 0; i < ORDER; i++)
    {
        rate[i] = drive * (z[ZONE_B0 + i] + (W * z[ZONE_B0 + ORDER + i]) + (losses * z[ZONE_B0 + (2 * ORDER) + i]));
        for (j = 0; j < ORDER; j++) { rate[i] += (z[(i * ORDER) + j] + (W * z[ZONE_A1 + (i * ORDER) + j])) * x[j]; }
    }
}

/* Cold friction power and electric losses of a zone, from losses of joints, losses of rotors and squared currents. */
static void heated_by(int zone, const double *y, const double *losses, double share, double *W, double *copper)
{
    const double *z = &zones[(zone * ZONE) + ZONE_BASE];
    const int joint = (int)z[4];
    const int drive = (int)z[5];
    const int motor = (int)z[6];
    double power = 0.0;
    if (joint >= 0) { power += share * losses[joint]; }
    if (drive >= 0) { power += share * losses[COUNT_TREE + drive]; }
    *W = power / ratio_at(zone, temperature(zone, y));
    *copper = (motor >= 0) ? (z[3] * share * losses[COUNT_TREE + COUNT_DRIVES + motor]) : 0.0;
}

/* The exact solution for a power that holds: a series, in so many parts that it converges at once. */
static void heat_up(int zone, double *y, double W, double losses, double dt)
{
    const double *z = &zones[zone * ZONE];
    double size = 0.0;
    int parts;
    int i;
    int k;
    for (i = 0; i < (ORDER * ORDER); i++) { size += fabs(z[i] + (W * z[ZONE_A1 + i])); }
    parts = 1 + (int)fmin(1.0e6, 2.0 * size * dt);
    for (; parts > 0; parts--)
    {
        const double h = dt / (double)parts;
        double term[ORDER];
        double next[ORDER];
        heat_rate(zone, W, losses, 1.0, y, term);
        for (k = 1; k < 20; k++)
        {
            for (i = 0; i < ORDER; i++)
            {
                term[i] *= h / (double)k;
                y[i] += term[i];
            }
            heat_rate(zone, W, losses, 0.0, term, next);
            (void)memcpy(term, next, sizeof(term));
        }
        dt -= h;
    }
}
