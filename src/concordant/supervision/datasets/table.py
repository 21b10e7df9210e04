"""The table of datasets: facts only; nothing registers itself."""

from __future__ import annotations

from concordant.supervision.datasets import contests, loaders, sushi_pairs
from concordant.supervision.datasets.checksums import CHECKSUMS
from concordant.supervision.datasets.dataset import Dataset, whole
from concordant.supervision.datasets.graded_table import GRADED, SUSHI, SUSHI_FOLDERS, SUSHI_TERMS

__all__ = ["DATASETS"]

BRADLEY_TERRY = "GitHub cran/BradleyTerry2 {} at a6ce24eeadb1eafe36c336c27567a47e9d8e2e7a"
GET_ANOTHER_LABEL = "GitHub ipeirotis/Get-Another-Label {} at 9fe6c56a7a157dba1a12018f696bad56806125b7"
LLMFAO = "GitHub dustalov/llmfao at 9e224e94a40129fd6e1e1529b962307e84af40da"


def preflib(number: str, title: str, elections: int) -> Dataset:
    """Give an entry for an archive of PrefLib."""
    name = number.partition("-")[2]
    return Dataset(
        name=f"preflib-{name}",
        title=title,
        kind="elections",
        source=f"https://preflib.github.io/PrefLib-Jekyll/dataset/{number[:5]}",
        licence="GPL-3 (repository); info.txt in the archive names the citations asked for",
        folders=("preflib",),
        layouts=whole(f"{number}.tar"),
        read=loaders.read_elections,
        queries=elections,
        checksums=CHECKSUMS["preflib"],
    )


ORDERS = (
    Dataset(
        name="sushi-orders-a",
        title="SUSHI set A orders: the same 10 items ordered by each of 5,000 users",
        kind="orders",
        source=SUSHI,
        licence=SUSHI_TERMS,
        folders=SUSHI_FOLDERS,
        layouts=whole("sushi3a.5000.10.order"),
        read=loaders.read_sushi_orders,
        queries=5000,
        documents=50_000,
        checksums=CHECKSUMS["sushi"],
    ),
    Dataset(
        name="sushi-orders-b",
        title="SUSHI set B orders: 10 of 100 items ordered by each of 5,000 users",
        kind="orders",
        source=SUSHI,
        licence=SUSHI_TERMS,
        folders=SUSHI_FOLDERS,
        layouts=whole("sushi3b.5000.10.order", "sushi3.idata"),
        read=loaders.read_sushi_orders,
        queries=5000,
        documents=50_000,
        features=7,
        checksums=CHECKSUMS["sushi"],
    ),
)
COMPARISONS = (
    Dataset(
        name="chess-twic",
        title="Over-the-board chess games 1999-2006, headers of The Week in Chess",
        kind="comparisons",
        source="https://theweekinchess.com, as collected in GitHub rozim/ChessData",
        licence="none stated; results only",
        folders=("chess-twic",),
        layouts=whole("games-1999-2006.csv"),
        read=contests.read_chess,
        queries=441_160,
        documents=28_299,
        features=2,
        checksums=CHECKSUMS["chess-twic"],
    ),
    Dataset(
        name="chess-worldcup",
        title="Games of the FIDE World Cups 2011, 2013 and 2015",
        kind="comparisons",
        source="GitHub cran/rchess data/chesswc.rda at 6cafc172631d3fbc17636a45db879c48ca271b5f",
        licence="MIT",
        folders=("chess-worldcup",),
        layouts=whole("chesswc.csv"),
        read=contests.read_worldcup,
        queries=1266,
        documents=240,
        features=2,
        checksums=CHECKSUMS["chess-worldcup"],
    ),
    Dataset(
        name="football-international",
        title="Men's international football matches from 1872",
        kind="comparisons",
        source="GitHub martj42/international_results at 65d212aac5deec5157071dcf6e9b05fce0223c84",
        licence="CC0 1.0",
        folders=("football-international",),
        layouts=whole("results.csv", "former_names.csv"),
        read=contests.read_football,
        queries=49_520,
        documents=337,
        features=1,
        checksums=CHECKSUMS["football-international"],
    ),
    Dataset(
        name="cems",
        title="Students compare management schools; 91 of 4,545 comparisons are missing and dropped",
        kind="comparisons",
        source=BRADLEY_TERRY.format("data/CEMS.R"),
        licence="GPL (>= 2)",
        folders=("paired-ties-classic",),
        layouts=whole("cems-preferences.csv", "cems-schools.csv", "cems-students.csv"),
        read=contests.read_cems,
        queries=4454,
        documents=6,
        checksums=CHECKSUMS["paired-ties-classic"],
    ),
    Dataset(
        name="icehockey",
        title="College ice hockey games 2009-10",
        kind="comparisons",
        source=BRADLEY_TERRY.format("data/icehockey.R"),
        licence="GPL (>= 2)",
        folders=("paired-ties-classic",),
        layouts=whole("icehockey.csv"),
        read=contests.read_icehockey,
        queries=1083,
        documents=58,
        features=1,
        checksums=CHECKSUMS["paired-ties-classic"],
    ),
    Dataset(
        name="springall",
        title="Nine flavour mixtures: counts of wins and ties (Springall 1973)",
        kind="comparisons",
        source=BRADLEY_TERRY.format("data/springall.R"),
        licence="GPL (>= 2)",
        folders=("paired-ties-classic",),
        layouts=whole("springall-contests.csv", "springall-predictors.csv"),
        read=contests.read_springall,
        queries=36,
        documents=9,
        features=2,
        checksums=CHECKSUMS["paired-ties-classic"],
    ),
    Dataset(
        name="pudding",
        title="Davidson's pudding brands: counts of wins and ties (Davidson 1970)",
        kind="comparisons",
        source="GitHub cran/PlackettLuce data/pudding.rda at 855e9d39727c84f0f155146b8c6be389090d0803",
        licence="GPL-3",
        folders=("paired-ties-classic",),
        layouts=whole("pudding.csv"),
        read=contests.read_pudding,
        queries=15,
        documents=6,
        checksums=CHECKSUMS["paired-ties-classic"],
    ),
    *(
        Dataset(
            name=name,
            title=f"Answers of language models to 13 prompts, compared by {judge}",
            kind="comparisons",
            source=LLMFAO,
            licence="CC BY 4.0",
            folders=("llmfao",),
            layouts=whole(file),
            read=contests.read_votes,
            queries=judgements,
            documents=models,
            checksums=CHECKSUMS["llmfao"],
        )
        for name, judge, file, judgements, models in (
            ("llmfao", "124 crowd workers", "crowd-comparisons.csv", 8931, 59),
            ("llmfao-gpt3", "GPT-3", "gpt3-comparisons.csv", 3236, 70),
            ("llmfao-gpt4", "GPT-4", "gpt4-comparisons.csv", 3236, 70),
        )
    ),
    Dataset(
        name="sushi-pairs",
        title="SUSHI set B scores as the 25,000 pairs of Support vector comparison machines",
        kind="comparisons",
        source=SUSHI,
        licence=SUSHI_TERMS,
        folders=SUSHI_FOLDERS,
        layouts=whole("sushi3b.5000.10.score", "sushi3.idata", "sushi3.udata"),
        read=sushi_pairs.read_sushi_pairs,
        queries=25_000,
        documents=100,
        features=14,
        checksums=CHECKSUMS["sushi"],
    ),
    Dataset(
        name="svmcompare-l2",
        title="The simulated pairs behind Figure 4 (l2) of Support vector comparison machines",
        kind="comparisons",
        source="regenerated from the published generator; see concordant.supervision.synthetic.comparisons",
        licence="none stated; simulated",
        folders=("svmcompare-l2",),
        layouts=whole("pool.csv", "splits.csv"),
        read=contests.read_svmcompare,
        queries=10_000,
        documents=20_000,
        features=2,
        checksums=CHECKSUMS["svmcompare-l2"],
    ),
)

ANNOTATIONS = (
    *(
        Dataset(
            name=name,
            title=f"TREC 2011 crowdsourcing track: binary relevance votes {whose}, with NIST grades",
            kind="annotations",
            source=GET_ANOTHER_LABEL.format("data/JeroenVuurens"),
            licence="Apache-2.0 (repository)",
            folders=("crowd-relevance",),
            layouts=whole(file, "nist-gold.txt"),
            read=loaders.read_crowd_relevance,
            documents=items,
            grades="0..1",
            checksums=CHECKSUMS["crowd-relevance"],
        )
        for name, whose, file, items in (
            ("crowd-relevance", "of one team's workers", "votes.txt", 2165),
            ("crowd-relevance-others", "of the other teams' workers", "otherparticipantsvotes.txt", 3387),
        )
    ),
    Dataset(
        name="crowd-ordinal-hcomp2010",
        title="Ordinal grades by 338 workers on 496 items; 737 unjudged of 44,373 are left out",
        kind="annotations",
        source=GET_ANOTHER_LABEL.format("data/AdultContent3-HCOMP2010/labels.txt"),
        licence="Apache-2.0 (repository)",
        folders=("crowd-ordinal-hcomp2010",),
        layouts=whole("labels.tsv"),
        read=loaders.read_crowd_ordinal,
        documents=496,
        grades="0..3",
        checksums=CHECKSUMS["crowd-ordinal-hcomp2010"],
    ),
    preflib("00004-netflix", "Elections with 3 or 4 films, strict orders induced from ratings", 200),
    preflib("00006-skate", "Figure skating: 8 to 10 judges order 14 to 30 skaters, with ties", 48),
    preflib("00009-agh", "Students order courses", 2),
    preflib("00012-shirt", "Voters order T-shirt designs", 1),
    preflib("00015-cleanweb", "Search engines order the pages of a query", 79),
    preflib("00024-dots", "Numbers of dots, four noise levels, known true order: item numbers ascending", 4),
    preflib(
        "00025-puzzle", "Sliding puzzles, four noise levels, known true order: item numbers ascending", 4
    ),
    preflib("00032-education", "Reasons of success and failure in education, partial orders", 7),
    preflib("00034-cities", "Cities, partial orders", 2),
    preflib("00035-breakfast", "Breakfast items, complete orders", 6),
    preflib("00064-eurovision", "Eurovision song contests: countries order the best ten", 73),
)

DATASETS: tuple[Dataset, ...] = (*GRADED, *ORDERS, *COMPARISONS, *ANNOTATIONS)
