"""The public names, each with the module that holds it."""

from .figures.formula_plots import Plot as Plot
from .figures.formula_plots import plot as plot
from .numerics.ceiling import AttentionCeiling as AttentionCeiling
from .numerics.ceiling import attention_ceiling as attention_ceiling
from .numerics.comparison import (
    Comparison as Comparison,
)
from .numerics.comparison import (
    Ranking as Ranking,
)
from .numerics.comparison import (
    compare_tails as compare_tails,
)
from .numerics.depth import (
    LayeredReceptiveField as LayeredReceptiveField,
)
from .numerics.depth import (
    layered_receptive_field as layered_receptive_field,
)
from .numerics.design.designs import Design as Design
from .numerics.design.solve import design as design
from .numerics.horizon import Horizon as Horizon
from .numerics.horizon import dtype_horizon as dtype_horizon
from .numerics.leak import Leak as Leak
from .numerics.leak import leak as leak
from .numerics.price import DistancePrice as DistancePrice
from .numerics.price import Reach as Reach
from .numerics.price import price_of_distance as price_of_distance
from .numerics.price import reach as reach
from .numerics.receptive_field import (
    ReceptiveField as ReceptiveField,
)
from .numerics.receptive_field import ReceptiveFields as ReceptiveFields
from .numerics.receptive_field import receptive_fields as receptive_fields
from .numerics.receptive_field import (
    theoretical_receptive_field as theoretical_receptive_field,
)
from .numerics.resolution import (
    Resolution as Resolution,
)
from .numerics.resolution import (
    attention_resolution as attention_resolution,
)
from .numerics.windows.question import Window as Window
from .numerics.windows.question import WindowError as WindowError
from .numerics.windows.row_bound import RowCertificates as RowCertificates
from .numerics.windows.row_bound import window_certificate as window_certificate
from .numerics.windows.sampled_rows import SampledCertificates as SampledCertificates
from .numerics.windows.sampled_rows import sampled_certificate as sampled_certificate
from .numerics.windows.window import certified_window as certified_window
from .numerics.windows.window import window_error as window_error
from .theory.answers.errors import InputError as InputError
from .theory.certificates.verification import ReceivedCertificate as ReceivedCertificate
from .theory.certificates.verification import verify_certificate as verify_certificate
from .theory.convergence import Convergence as Convergence
from .theory.convergence import Verdict as Verdict
from .theory.convergence import check_convergence as check_convergence
from .theory.encodings import Encoding as Encoding
from .theory.encodings import encoding as encoding
from .theory.encodings import encodings as encodings
from .theory.encodings.inspection import BiasInspection as BiasInspection
from .theory.encodings.inspection import inspect_bias as inspect_bias
from .validation.far_field.apply import apply as apply
from .validation.far_field.blame import blame as blame
from .validation.far_field.foresee import Foresight as Foresight
from .validation.far_field.foresee import foresee as foresee
from .validation.far_field.gap_probe import GapProbe as GapProbe
from .validation.far_field.gap_probe import gap_probe as gap_probe
from .validation.far_field.mend import Mending as Mending
from .validation.far_field.mend import mend as mend
from .validation.forecast import Forecast as Forecast
from .validation.forecast import forecast as forecast
from .validation.inventory import TrainedRun as TrainedRun
from .validation.models.audit import Audit as Audit
from .validation.models.audit import audit as audit
from .validation.models.empirical import EmpiricalReceptiveField as EmpiricalReceptiveField
from .validation.models.empirical import empirical_receptive_field as empirical_receptive_field
from .validation.models.smallest_window import SmallestWindow as SmallestWindow
from .validation.models.smallest_window import smallest_window as smallest_window
from .validation.papers.claim import Claim as Claim
from .validation.papers.ledger import claims as claims
from .validation.study.one_run import train as train
from .validation.study.study import Study as Study
from .validation.study.study import study as study

__version__: str
GROUPS: dict[str, tuple[str, ...]]
