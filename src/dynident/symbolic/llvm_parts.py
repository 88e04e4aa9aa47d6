"""Functions that LLVM's language lacks, for `print_llvm`: sine and cosine of four angles at a time, sinc and cosc."""

from __future__ import annotations

import re
import struct
from collections.abc import Sequence

# sin x / x and (1 - cos x) / x^2 of x^2, by their series near 0 as in `kernels.sinc`.
SINC = """declare double @llvm.sin.f64(double)
declare double @llvm.cos.f64(double)
declare double @llvm.sqrt.f64(double)
declare <4 x double> @llvm.sin.v4f64(<4 x double>)
declare <4 x double> @llvm.cos.v4f64(<4 x double>)
declare <4 x double> @llvm.fabs.v4f64(<4 x double>)
declare i1 @llvm.vector.reduce.or.v4i1(<4 x i1>)
define internal double @sinc(double %square) {
  %far = fcmp ogt double %square, 1.0e-12
  br i1 %far, label %away, label %near
away:
  %angle = call double @llvm.sqrt.f64(double %square)
  %sine = call double @llvm.sin.f64(double %angle)
  %ratio = fdiv double %sine, %angle
  ret double %ratio
near:
  %part = fdiv double %square, 6.0
  %rest = fsub double 1.0, %part
  ret double %rest
}
define internal double @cosc(double %square) {
  %far = fcmp ogt double %square, 1.0e-12
  br i1 %far, label %away, label %near
away:
  %angle = call double @llvm.sqrt.f64(double %square)
  %cosine = call double @llvm.cos.f64(double %angle)
  %gap = fsub double 1.0, %cosine
  %ratio = fdiv double %gap, %square
  ret double %ratio
near:
  %part = fdiv double %square, 24.0
  %rest = fsub double 0.5, %part
  ret double %rest
}
"""


# As `kernels.sine_cosine`, four angles at a time: the C library's functions would take half of the time of a robot.
_SINE_COSINE = """define internal {{V, V}} @sine_cosine(V %x) {
  %size = call V @llvm.fabs.v4f64(V %x)
  %large = fcmp ugt V %size, {1e5}
  %any = call i1 @llvm.vector.reduce.or.v4i1(<4 x i1> %large)
  br i1 %any, label %library, label %polynomial
library:
  %ls = call V @llvm.sin.v4f64(V %x)
  %lc = call V @llvm.cos.v4f64(V %x)
  %l1 = insertvalue {{V, V}} undef, V %ls, 0
  %l2 = insertvalue {{V, V}} %l1, V %lc, 1
  ret {{V, V}} %l2
polynomial:
  %t0 = fmul V %x, {6.36619772367581382433e-01}
  %t1 = fadd V %t0, {6755399441055744.0}
  %turns = fsub V %t1, {6755399441055744.0}
  %a1 = fmul contract V %turns, {1.57079632673412561417e00}
  %r1 = fsub contract V %x, %a1
  %a2 = fmul contract V %turns, {6.07710050630396597660e-11}
  %r2 = fsub contract V %r1, %a2
  %a3 = fmul contract V %turns, {2.02226624879595063154e-21}
  %r = fsub contract V %r2, %a3
  %z = fmul contract V %r, %r
  SINE
  %rz = fmul contract V %r, %z
  %rzp = fmul contract V %rz, %s5
  %s = fadd contract V %r, %rzp
  COSINE
  %zz = fmul contract V %z, %z
  %zzp = fmul contract V %zz, %c5
  %half = fmul contract V %z, {0.5}
  %rest = fsub contract V %half, %zzp
  %c = fsub contract V {1.0}, %rest
  %q0 = fmul V %turns, {0.25}
  %q1 = fadd V %q0, {6755399441055744.0}
  %q2 = fsub V %q1, {6755399441055744.0}
  %q3 = fmul V %q2, {4.0}
  %quarter = fsub V %turns, %q3
  %square = fmul V %quarter, %quarter
  %odd = fcmp oeq V %square, {1.0}
  %way = call V @llvm.fabs.v4f64(V %quarter)
  %sign = fsub V {1.0}, %way
  %back = fneg V %quarter
  %sa = select <4 x i1> %odd, V %quarter, V %sign
  %sb = select <4 x i1> %odd, V %c, V %s
  %sine = fmul V %sa, %sb
  %ca = select <4 x i1> %odd, V %back, V %sign
  %cb = select <4 x i1> %odd, V %s, V %c
  %cosine = fmul V %ca, %cb
  %o1 = insertvalue {{V, V}} undef, V %sine, 0
  %o2 = insertvalue {{V, V}} %o1, V %cosine, 1
  ret {{V, V}} %o2
}
"""
# Coefficients as in `kernels.sine_cosine`, highest power first.
_SINE = (
    *(1.58969099521155010221e-10, -2.50507602534068634195e-08, 2.75573137070700676789e-06),
    *(-1.98412698298579493134e-04, 8.33333333332248946124e-03, -1.66666666666666324348e-01),
)
_COSINE = (
    *(-1.13596475577881948265e-11, 2.08757232129817482790e-09, -2.75573143513906633035e-07),
    *(2.48015872894767294178e-05, -1.38888888888741095749e-03, 4.16666666666666019037e-02),
)


def bits(value: float) -> str:
    """Return a number exactly, as its bits.

    Parameters
    ----------
    value : float
        Number.

    Returns
    -------
    str
        Constant in LLVM's language.
    """
    return f"0x{struct.unpack('<Q', struct.pack('<d', value))[0]:016X}"


def _splat(value: float) -> str:
    return "<" + ", ".join([f"double {bits(value)}"] * 4) + ">"


def _polynomial(name: str, factors: Sequence[float]) -> str:
    """Return Horner's scheme in z; the result is %name5."""
    lines, last = [], _splat(factors[0])
    for i, factor in enumerate(factors[1:], 1):
        lines += [f"%{name}m{i} = fmul contract V {last}, %z", f"%{name}{i} = fadd contract V %{name}m{i}, {_splat(factor)}"]
        last = f"%{name}{i}"
    return "\n  ".join(lines)


def sine_cosine() -> str:
    """Return the function that gives sine and cosine of four angles.

    Returns
    -------
    str
        Its definition in LLVM's language.
    """
    text = _SINE_COSINE.replace("COSINE", _polynomial("c", _COSINE)).replace("SINE", _polynomial("s", _SINE))
    text = re.sub(r"\{([\d.e+-]+)\}", lambda found: _splat(float(found[1])), text)
    return re.sub(r"\bV\b", "<4 x double>", text).replace("{{", "{").replace("}}", "}")
