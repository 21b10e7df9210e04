from . import metrics as metrics
from . import theory as theory
from .exceptions import ConcordantError as ConcordantError
from .metrics import Convention as Convention
from .metrics import Metric as Metric
from .metrics import metric as metric
from .supervision import datasets as datasets
from .supervision import synthetic as synthetic
from .supervision.data import RankingData as RankingData
from .supervision.labels import Comparisons as Comparisons
from .supervision.labels import Grades as Grades
from .supervision.labels import Permutations as Permutations
from .supervision.labels import Preferences as Preferences
from .supervision.queries import Queries as Queries
from .supervision.readers import from_frame as from_frame
from .supervision.readers import join as join
from .supervision.readers import read_comparisons as read_comparisons
from .supervision.readers import read_letor as read_letor
from .supervision.readers import read_preflib as read_preflib
from .supervision.readers import read_qrels as read_qrels
from .supervision.readers import read_run as read_run
from .supervision.readers import read_table as read_table
from .supervision.readers import write_letor as write_letor
from .supervision.readers import write_qrels as write_qrels
from .supervision.readers import write_run as write_run

__version__: str
