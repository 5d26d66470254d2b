"""Formulas that SymPy could work on for minutes: what they take with a budget of one second.

    python benchmarks/hard.py [--budget SECONDS] [--threads K]

A budget is kept to about a second: the processor time of each should stay below 2.5 seconds. With
threads the formulas are asked at the same time, K at once, and only the verdicts are shown.
"""

from __future__ import annotations

import argparse
import sys
import time
from concurrent.futures import ThreadPoolExecutor

from farfield import InputError, check_convergence

MOST_S = 2.5
HARD = (
    "-((a+b+c+d+g)**9-a**3*b**2*c*d*g**2+1)*log(n)",
    "-((a+b+c+d)**12-(a*b*c*d)**3)*log(n)-log(log(n))",
    "-((a*b+c*d+g*h)**8+(a-b)**7-(c-d)**5*g**3)*log(n)",
    "-log(n)*((a+1)*(b+2)*(c+3)*(d+4)*(g+5)-(a*b*c*d*g+120))**4",
    "-(a*b-c*d)**6*n**a+(a*d-b*c)**6*n**b+log(n)*(a-b)**9",
    "-log(n)*(1+sin((a+b+c)**7*n))*((a+b)**8-(b+c)**8)",
    "-(n+a)**40*log(n)/(n**40+(a+b)**12*n**39+1)",
    "-log(n)*((a+b+sqrt(c)+sqrt(d))**10-(sqrt(a)+sqrt(b)+c+d)**10)",
    "-log(n)*(exp(a)+exp(b)+exp(c)+1)**11/(1+(a+b+c)**6)",
    "-log(n)*(sin(1)+cos(1)+sqrt(2)+sqrt(3)+sqrt(5)+pi)**12/(sin(1)-cos(1)+sqrt(7))**11",
    "-log(n)*(sqrt(2)+sqrt(3)+sqrt(5)+sqrt(7)+sqrt(11)+sqrt(13))**9/10**6",
    "-loggamma(loggamma(loggamma(n+1)+1)+1)*exp(loggamma(log(n)+1))",
    "-log(n)*exp(loggamma(loggamma(n+1)))/(loggamma(loggamma(n+2))+log(log(n)))",
    "-tanh(n/loggamma(log(log(log(n)+3)+3)+3)+sin(3))*log(n)",
    "-exp(exp(exp(log(log(n)+1)+1/n)+1/log(n))-exp(exp(log(log(n)+1))))*log(n)",
    "-LambertW(LambertW(LambertW(n*exp(n))+log(n)))*log(n)/log(log(n))",
    "-log(n)*gamma(1/3)*gamma(2/3)*gamma(1/5)*gamma(2/5)*gamma(3/5)*gamma(4/5)/30",
    "-log(n)*zeta(3)*polygamma(3,1/7)/(polygamma(5,2/7)+zeta(5))",
    "-((besseli(0,1/3)*erfc(sin(n))))**(Piecewise((Ci(n),(a+sin(n))<3),((a+sin(n)),True)))",
    "-Piecewise((log(n)*(a+b)**15,(a+b+c)**9<(a*b*c)**3+1),((c+1)*log(n),True))",
    "-Min(a*log(n),b*log(n),c*log(n),d*log(n),(a+b)*(c+d)*log(n))-Max(a,b,c,d)",
    "-Abs(a-b)*Abs(b-c)*Abs(c-d)*Abs(d-a)*log(n)+Abs((a-c)*(b-d))*log(n)",
    "-(a+b*sin(n)+c*cos(n)+d*sin(n)*cos(n)+sin(n)**6*cos(n)**8)*log(n)",
    "-(sin(n)+cos(n)+sin(2*n)+cos(3*n)+1)**9*log(n)/1000",
    "-(sin(n)+sin(sqrt(2)*n)+sin(sqrt(3)*n)+sin(sqrt(5)*n)+4)**3*log(n)",
    "-log(n)*Sum((k+1)**20/(k+2)**19,(k,1,n))/n**2",
    "-Sum(1/((k+1)*(k+2)*(k+3)*(k**2+k+7)*(k**3+2)),(k,1,n))*log(n)",
    "-log(n)*(1+1/n)**(n**2)*(1-1/n)**(n**2)*a**b/(b**a+c**d-d**c)",
    "-(a**b-b**a)*(b**c-c**b)*(c**a-a**c)*log(n)-n**(a**b)/n**(b**a)",
    "-(n**a*log(n)**b*log(log(n))**c-n**d*log(n)**g*log(log(n))**h)*(a-d)*(b-g)",
)


def seconds(text: str, budget: float) -> tuple[str, float]:
    """The verdict, and the processor time of this thread."""
    start = time.thread_time()
    try:
        found = str(check_convergence(text, budget_s=budget).verdict)
    except InputError as why:
        found = str(why)
    return found, time.thread_time() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--budget", type=float, default=1.0)
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    seconds("-log(n)", 1)
    with ThreadPoolExecutor(options.threads) as pool:
        answers = list(pool.map(lambda text: seconds(text, options.budget), HARD))
    for text, (found, taken) in zip(HARD, answers, strict=True):
        print(f"{taken:6.2f} s  {found[:60]:<60}  {text[:70]}")
    late = sum(taken > options.budget + MOST_S - 1 for _, taken in answers)
    print(f"{len(HARD)} formulas, slowest {max(t for _, t in answers):.2f} s, {late} too slow")
    sys.exit(bool(late))


if __name__ == "__main__":
    main()
