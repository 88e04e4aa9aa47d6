"""Math functions missing from LLVM IR, for vectors of any width: sine and cosine, sinc, and the C library's lane by lane."""

from __future__ import annotations

import re
import struct
from collections.abc import Sequence
from functools import reduce

from dynident.graph.operations import DSINC_SERIES, SINC_SERIES, SMALL

# After fdlibm's kernels: reduction by pi/2 in three parts, minimax polynomials; beyond 1e5 rad the C library's own functions.
_SINE_COSINE = """define internal {{V, V}} @sine_cosine_W(V %x) alwaysinline {
  %size = call V @llvm.fabs.vWf64(V %x)
  %large = fcmp ugt V %size, {1e5}
  %any = call i1 @llvm.vector.reduce.or.vWi1(<W x i1> %large)
  br i1 %any, label %library, label %polynomial
library:
  %ls = call V @sin_W(V %x)
  %lc = call V @cos_W(V %x)
  %l1 = insertvalue {{V, V}} poison, V %ls, 0
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
  %way = call V @llvm.fabs.vWf64(V %quarter)
  %sign = fsub V {1.0}, %way
  %back = fneg V %quarter
  %sa = select <W x i1> %odd, V %quarter, V %sign
  %sb = select <W x i1> %odd, V %c, V %s
  %sine = fmul V %sa, %sb
  %ca = select <W x i1> %odd, V %back, V %sign
  %cb = select <W x i1> %odd, V %s, V %c
  %cosine = fmul V %ca, %cb
  %o1 = insertvalue {{V, V}} poison, V %sine, 0
  %o2 = insertvalue {{V, V}} %o1, V %cosine, 1
  ret {{V, V}} %o2
}
"""
# After Cephes: a rational function near zero, 1 - 2 / (e^2|x| + 1) elsewhere; e^y = 2^k e^r with |r| below log(2) / 2.
_TANH = """define internal V @tanh_W(V %x) alwaysinline {
  %size = call V @llvm.fabs.vWf64(V %x)
  %near = fcmp olt V %size, {0.625}
  %z = fmul contract V %x, %x
  NUMERATOR
  DENOMINATOR
  %ratio = fdiv V %n2, %d3
  %xz = fmul contract V %x, %z
  %bend = fmul contract V %xz, %ratio
  %small = fadd contract V %x, %bend
  %twice = fadd V %size, %size
  %below = fcmp ult V %twice, {40.0}
  %y = select T %below, V %twice, V {40.0}
  %k0 = fmul V %y, {1.4426950408889634}
  %k1 = fadd V %k0, {6755399441055744.0}
  %k = fsub V %k1, {6755399441055744.0}
  %a1 = fmul contract V %k, {6.93145751953125e-01}
  %r1 = fsub contract V %y, %a1
  %a2 = fmul contract V %k, {1.42860682030941723212e-06}
  %r = fsub contract V %r1, %a2
  %rr = fmul contract V %r, %r
  UP
  DOWN
  %p = fmul contract V %r, %u2
  %gap = fsub contract V %w3, %p
  %pp = fadd V %p, %p
  %part = fdiv V %pp, %gap
  %er = fadd V %part, {1.0}
  %whole = bitcast V %k1 to I
  %shifted = shl I %whole, SHIFT
  %bits = bitcast V {1.0} to I
  %power = add I %shifted, %bits
  %two = bitcast I %power to V
  %e = fmul V %er, %two
  %e1 = fadd V %e, {1.0}
  %share = fdiv V {2.0}, %e1
  %rest = fsub V {1.0}, %share
  %large = call V @llvm.copysign.vWf64(V %rest, V %x)
  %value = select T %near, V %small, V %large
  ret V %value
}
"""
_TANH_PARTS = {
    "NUMERATOR": ("n", (-9.64399179425052238628e-01, -9.92877231001918586564e01, -1.61468768441708447952e03), "%z"),
    "DENOMINATOR": ("d", (1.0, 1.12811678491632931402e02, 2.23548839060100448583e03, 4.84406305325125486048e03), "%z"),
    "UP": ("u", (1.26177193074810590878e-04, 3.02994407707441961300e-02, 9.99999999999999999910e-01), "%rr"),
    "DOWN": (
        "w",
        (3.00198505138664455042e-06, 2.52448340349684104192e-03, 2.27265548208155028766e-01, 2.0),
        "%rr",
    ),
}
# Highest power first.
_SINE = (
    *(1.58969099521155010221e-10, -2.50507602534068634195e-08, 2.75573137070700676789e-06),
    *(-1.98412698298579493134e-04, 8.33333333332248946124e-03, -1.66666666666666324348e-01),
)
_COSINE = (
    *(-1.13596475577881948265e-11, 2.08757232129817482790e-09, -2.75573143513906633035e-07),
    *(2.48015872894767294178e-05, -1.38888888888741095749e-03, 4.16666666666666019037e-02),
)
_LIBRARY = {"sin": 1, "cos": 1, "exp": 1, "log": 1, "pow": 2, "atan2": 2}  # of the C library, by number of arguments
_INTRINSIC = {"sqrt": "sqrt", "floor": "floor", "abs": "fabs"}


def bits(value: float) -> str:
    """Return a number exactly, as its bits."""
    return f"0x{struct.unpack('<Q', struct.pack('<d', value))[0]:016X}"


def splat(value: float, width: int) -> str:
    """Return a number, repeated for every sample."""
    return bits(value) if width == 1 else "<" + ", ".join([f"double {bits(value)}"] * width) + ">"


def of_width(kind: str, width: int) -> str:
    """Return the type of so many numbers, truths or integers."""
    return kind if width == 1 else f"<{width} x {kind}>"


def _polynomial(name: str, factors: Sequence[float], variable: str = "%z") -> str:
    """Return Horner's scheme, highest power first, with numbers in braces; the result is %name<degree>."""
    lines, last = [], f"{{{factors[0]!r}}}"
    for i, factor in enumerate(factors[1:], 1):
        lines += [
            f"%{name}m{i} = fmul contract V {last}, {variable}",
            f"%{name}{i} = fadd contract V %{name}m{i}, {{{factor!r}}}",
        ]
        last = f"%{name}{i}"
    return "\n  ".join(lines)


def _sinc(name: str, series: Sequence[float], away: str) -> str:
    """Return a function of x^2 with its series near zero; `away` computes %far from %s, its root %x, %sin and %cos."""
    degree = len(series) - 1
    return f"""define internal V @{name}_W(V %square) {{
  %near = fcmp ole V %square, {{{SMALL!r}}}
  %s = select T %near, V {{{SMALL!r}}}, V %square
  %x = call V @sqrt_W(V %s)
  %sin = call V @sin_W(V %x)
  %cos = call V @cos_W(V %x)
  {away}
  {_polynomial("p", tuple(reversed(series)), "%square")}
  %value = select T %near, V %p{degree}, V %far
  ret V %value
}}
"""


def _filled(text: str, width: int) -> str:
    """Return a template with numbers {1.5}, the vector V, the truth T and the width W filled in."""
    text = re.sub(r"\{(-?[\d.]+(?:e[+-]?\d+)?)\}", lambda found: splat(float(found[1]), width), text)
    for letter, kind in (("V", "double"), ("T", "i1"), ("I", "i64")):
        text = re.sub(rf"\b{letter}\b", of_width(kind, width), text)
    text = re.sub(r"_W\b", f"_{width}", text).replace("<W x", f"<{width} x")
    return re.sub(r"\.vW(f64|i1)", r".\1" if width == 1 else rf".v{width}\1", text).replace("{{", "{").replace("}}", "}")


def _by_lanes(name: str, count: int, width: int) -> str:
    """Return a function of the C library for a vector: one call per lane."""
    T = of_width("double", width)
    takes = ", ".join(f"{T} %x{i}" for i in range(count))
    lines = [f"define internal {T} @{name}_{width}({takes}) {{"]
    if width == 1:
        gives = ", ".join(f"double %x{i}" for i in range(count))
        return "\n".join([*lines, f"  %y = call double @{name}({gives})", "  ret double %y", "}"])
    last = "poison"
    for lane in range(width):
        for i in range(count):
            lines.append(f"  %a{lane}_{i} = extractelement {T} %x{i}, i32 {lane}")
        gives = ", ".join(f"double %a{lane}_{i}" for i in range(count))
        lines.append(f"  %y{lane} = call double @{name}({gives})")
        lines.append(f"  %v{lane} = insertelement {T} {last}, double %y{lane}, i32 {lane}")
        last = f"%v{lane}"
    return "\n".join([*lines, f"  ret {T} {last}", "}"])


_ANGLE = ("sqrt", "sin", "cos")
_NEEDS = {"sine_cosine": ("sin", "cos", "abs"), "sinc": _ANGLE, "dsinc": _ANGLE, "tanh": ("abs",)}


def library(text: str) -> str:
    """Return declarations and definitions of the functions that a printed text calls, and of no others."""
    wanted = {(name, int(width)) for name, width in re.findall(r"call [^@]*@([a-z0-9_]+)_(\d+)\(", text)}
    wanted &= {(name, width) for name in (*_LIBRARY, *_INTRINSIC, *_NEEDS) for _, width in wanted}
    for name, width in list(wanted):
        wanted |= {(other, width) for other in _NEEDS.get(name, ())}
    parts = [
        f"declare double @{name}({', '.join(['double'] * _LIBRARY[name])})"
        for name in _LIBRARY
        if name in {n for n, _ in wanted}
    ]
    for name, width in sorted(wanted):
        vector = of_width("double", width)
        suffix = "f64" if width == 1 else f"v{width}f64"
        if name in _LIBRARY:
            parts.append(_by_lanes(name, _LIBRARY[name], width))
        elif name in _INTRINSIC:
            intrinsic = f"{vector} @llvm.{_INTRINSIC[name]}.{suffix}({vector}"
            call = f"  %y = call {intrinsic} %x)"
            head = f"define internal {vector} @{name}_{width}({vector} %x) alwaysinline {{"
            parts += [f"declare {intrinsic})", head, call, f"  ret {vector} %y", "}"]
        elif name == "sine_cosine":
            body = _SINE_COSINE.replace("COSINE", _polynomial("c", _COSINE)).replace("SINE", _polynomial("s", _SINE))
            parts += [f"declare i1 @llvm.vector.reduce.or.v{width}i1(<{width} x i1>)", _filled(body, width)]
        elif name == "tanh":
            body = reduce(lambda text, part: text.replace(part[0], _polynomial(*part[1])), _TANH_PARTS.items(), _TANH)
            shift = "52" if width == 1 else f"<{', '.join(['i64 52'] * width)}>"
            parts += [
                f"declare {vector} @llvm.copysign.{suffix}({vector}, {vector})",
                _filled(body.replace("SHIFT", shift), width),
            ]
        elif name == "sinc":
            parts.append(_filled(_sinc("sinc", SINC_SERIES, "%far = fdiv V %sin, %x"), width))
        else:
            away = "%ratio = fdiv V %sin, %x\n  %gap = fsub V %cos, %ratio\n  %two = fadd V %s, %s\n  %far = fdiv V %gap, %two"
            parts.append(_filled(_sinc("dsinc", DSINC_SERIES, away), width))
    return "\n".join(parts)
