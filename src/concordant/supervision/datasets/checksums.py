"""SHA-256 of the uncompressed contents of the files we have seen, by the folder they stand in.

Uncompressed, so that one number serves the plain file and every compressed copy of it.
"""

from __future__ import annotations

from collections.abc import Mapping

__all__ = ["CHECKSUMS"]


def with_folds(
    parts: Mapping[str, str], training: tuple[str, ...], names: tuple[str, str, str]
) -> dict[str, str]:
    """Add the files of the five folds: validation and test are parts, training is three parts in a row."""
    train, validation, test = names
    sums = dict(parts)
    for fold, checksum in enumerate(training, start=1):
        sums[train.format(fold)] = checksum
        sums[validation.format(fold)] = parts[f"S{(fold + 2) % 5 + 1}.txt"]
        sums[test.format(fold)] = parts[f"S{(fold + 3) % 5 + 1}.txt"]
    return sums


CHECKSUMS: dict[str, dict[str, str]] = {
    "chess-twic": {
        "games-1999-2006.csv": "5c2cf024bdbae84efd07f2c70979c5973ed35b4f7961cc28946c325c27d2c055",
    },
    "chess-worldcup": {
        "chesswc.csv": "e50a8c91ba4d98ada18953f2c6eecc412985ef6cd6d5db328efcc61883ac69f9",
    },
    "crowd-ordinal-hcomp2010": {
        "labels.tsv": "3b543fabdbe9a9f226adb4177ab808ed66a15311553526a852b9f316903b1e27",
    },
    "crowd-relevance": {
        "nist-gold.txt": "d3d178fcec927ea622f4335db907c31bacb3a85b821f0ae2e65244f4693be121",
        "otherparticipantsvotes.txt": "f505bddbcbc3bccda6b49c808fb78ea3ed6b2854fa4e069ff5e14c9e7e90b99c",
        "votes.txt": "95256163504f1a8a38795669a7b6ea36fd3e7dc9b1c0ba8247f0cf5361617d12",
    },
    "football-international": {
        "former_names.csv": "2d57f59a3ac13b24c2fcf208ced5a38710529d122da38929838d0980b002677e",
        "results.csv": "100afa17b2258ffcc0e9ef9612e374c5349e2b9390ec450b72147d4643c42070",
    },
    "lightgbm-lambdarank": {
        "rank.test.query": "36dca82ba3bf99201bac3987b00a8fbf6fe5f563e9fa6d0da90e783710a32df4",
        "rank.test": "3b1219ce117a0a36d2f76c02de7e7831c1d79af0d40f5195c03178bbe26c824b",
        "rank.train.query": "40cb5fef637229311cd30fab13cb7fb633b023e86a87ff04ec55db420143d6af",
        "rank.train": "a0c7201c89120879c14a5059e091f441cbf2a29b8aaef363885ccb1a530448df",
    },
    "llmfao": {
        "crowd-comparisons.csv": "106564a4bf06f047a4662979384313c22d9b4ca901e780f9e8419f8e5581adb1",
        "gpt3-comparisons.csv": "e430a8ae338f0531b7b3cf96472e9200b9c0a9858987b83531d91459a5f07086",
        "gpt4-comparisons.csv": "601c1b35438b00cb9b338e59bea74af17143ca9a91aff2403ba62f2c6db560d1",
    },
    "mq2007-partial": {
        "S1.txt": "06cee74ac12d9f40e4eae4c7bbc19e28934ffcc9459ac02d932aa54f13e5c242",
        "S2.txt": "43689ab9b28c1d9a13d6863e126ec2b0dd14b057cbaf20ea45db8baf6335f7b8",
        "S3.txt": "a06027f606d02d914bcda5c18283631fc0cf6466ea1a2b742d76207bc067cec2",
        "S4.txt": "f7680a9c22e4c84f04bb118e0852d7ed1e46b29d78cb42e69af543280bd6d8d3",
        "S5.txt": "0f06b2ae3d9a3a3f9d264877d915be5be16454f414c5a17f567fee66b7d4168f",
    },
    "mq2008": with_folds(
        {
            "S1.txt": "cbd42504549a2388f6c0aefdb506f22074225b574c7a5df10194174c9b00e4e0",
            "S2.txt": "055ac792cb8f7d5a029090b8acbfb6c57323339d1371251bf2465ac182aa8605",
            "S3.txt": "a03fe2b6e76479de60fecdb37d560a40a4e899b0cd685553d2da31ea205af1ab",
            "S4.txt": "a239850bc6fe960ad08c2b7b0d99db90fe976dd93a15358e98036591b4e7a2ac",
            "S5.txt": "c68c52feb1ecae7f17b64c8e2fda2098302681bbd4ea5fad8c73a1d32a1cf2b2",
        },
        (
            "9b98c14e9536f2a18c59670714c99defc63e74359c56cba219a61db248f27123",
            "96528d299fc07c54d8a6c7a539142be5cde1b75b15b7da875508b874e73bce91",
            "3886fb46484c2f55f78ce992886614dd65974f89897db18cf1127d0af259685b",
            "46bf4d68615328ec7933b28881129df08b8a23a4b12cb0c0a1652b48eab08b50",
            "d672fe2403743defa8642b44fa88a1d389ed9ada5a93aaece412ac563da22834",
        ),
        ("Fold{0}/train.txt", "Fold{0}/vali.txt", "Fold{0}/test.txt"),
    ),
    "ohsumed": with_folds(
        {
            "S1.txt": "cab705b59065b9ad09e5a72f16628ad5b45551f1e4fac572e1547fe62acdb72e",
            "S2.txt": "828d01d29449734aa7f6dbb9956b94eb3bfbfa311fcca52274ec9537f83b5841",
            "S3.txt": "836e622de07a6201828b3f199bc25a28e12416000aaa2ab2d9f517e7b8fb3591",
            "S4.txt": "12ffd7a154aa06cac7626d3c837cdcc85c194a650a2e4a151619b54d8136b402",
            "S5.txt": "4c7b8aba3f2a324566725f19c87720093d7a177c5e331c5171642d97939cfc9c",
        },
        (
            "dad852b587132695baac121ecb1027a6eeb1fd2116cef915037d5b4ab1aadf1d",
            "b087fd9012c01e462798f60b92a0d4bdd44e7e9dab3f11cdba73d2046140291e",
            "f2640a20f887a20a5dce225362ddeefbb833b4a3e226e97d169744aa352b19a6",
            "ee2864f713c2e4110e1685dbe120420ff223bfc868be68fbe4f19e1fa079f52e",
            "ba13ffa7534021af7a9764e649901667debffe456b0a186d0c5e0033cf9d46e2",
        ),
        ("Fold{0}/trainingset.txt", "Fold{0}/validationset.txt", "Fold{0}/testset.txt"),
    ),
    "paired-ties-classic": {
        "cems-preferences.csv": "12b585df7b719d16771254edbf1f46a32cae6a4475fb1970878f5692460db1ba",
        "cems-schools.csv": "369a2f0ce20e1abe0af7580b7ee6412647e6b0b3f98934c633a7a8c16ed73ca6",
        "cems-students.csv": "41131263dc8e5c6fd49d0890b8f4821d193cba0e2f1fe6727c6ea0f18c98e714",
        "icehockey.csv": "d2524a93e1ff1d32cfe96eba98a3e3354377abc0abc15735ed5d9fd88dbb6892",
        "pudding.csv": "588c9181ff687620b5da7dc387c566c5fe726c8ebbdefcc44d3415e20a47a6bc",
        "springall-contests.csv": "052bb52d2e0f8f3d7ab23e62cd63062065cd47885977dfbbbdf537651a48d431",
        "springall-predictors.csv": "85a882b3d01a12219076ea599b4ab372c6103f2772aaeeee497658ea6c9fabf1",
    },
    "preflib": {
        "00004-netflix.tar": "211e804167c90eb82c7d20b1b834c9808dbf1fea4afbd7f4ec094fd2ca502739",
        "00006-skate.tar": "1f94f4122df20e942734d786e0ea01905ffb60597207b7b3fdebfe9fac6130a7",
        "00009-agh.tar": "5469f638188936efa69f2e440d459a7331d3b0b7c8c8b6336802acde73b58670",
        "00012-shirt.tar": "45d81fa3357a92e16439b334cd03990be3fcfcdd6c2d8b1ef34c5273c1294436",
        "00015-cleanweb.tar": "13eb9889b95789ba833f913f75d7f9a448979e862debc075133c5e2f1853901c",
        "00024-dots.tar": "698793ac3bd6031f250c99f5513dc6673f312698cdc212d1bda30eb7c9f4108b",
        "00025-puzzle.tar": "ac99b210b28d3f4223c117dbd0465bcc2ed90aa5b22b83d48f7a93af607589fb",
        "00032-education.tar": "6fc7220d64d3c752c907c40de4d657141532ffec05e49aeb075abbb5ad1d542e",
        "00034-cities.tar": "c01c11157cfa62215444fe8ed272a867cf4b1df6b43c6e82a2b92293b8adf9e8",
        "00035-breakfast.tar": "2a10b6d30d0d596e21bb8245c51a54ac909c4f14b084852e76f1a2cf072a44e5",
        "00064-eurovision.tar": "5a3356d13bd2bece8b4dd98081b9b82415a90ff12f1c213620383ccc785a20e6",
    },
    "sushi": {
        "sushi3.idata": "236677eda275e13c39e4e0dc3d1438fb878527f15b6efbbb9ca07a715b866926",
        "sushi3.udata": "592d345613b6fbc1d7d126775eb5fb5628619e855c292166250f09651716eca2",
        "sushi3a.5000.10.order": "c56da325c0f58f9a38bafc650ed699b48dd2fb9f6ad64ba61ffc288d1ae4cc24",
        "sushi3b.5000.10.order": "a241c87331e4eabea5841aae0c8a982453cccd01b0a0f3b6a4e9cfabcdab563b",
        "sushi3b.5000.10.score": "4a600bbbdea7f75dc218e14776fa41228f9bd553842997ffe79c1227f3ec119d",
    },
    "svmcompare-l2": {
        "pool.csv": "6d96dfe7c438bb5442f1e17dbd871c93470158e56b441aba89db51406a1e0354",
        "splits.csv": "d94d051b1350c9c82e22cf49f8eb62d05e46fe9de3e6a51a8dfc84cc69a29865",
    },
}
