"""Files after public sets and labelling tools, made small: what their readers must find.

As in `wild_layouts`, each is named like the file it stands for.
"""

import random
from collections.abc import Callable
from typing import Any

from layouts import LABELS, RATERS, Layout, N, crowd, lines, table
from wild_layouts import text, views

Rows = list[list[Any]]


def doccano_lists(rng: random.Random) -> Layout:
    """doccano's JSONL of a finished project: names in `label`, comments beside it."""
    items = [
        {"id": 17 + k, "text": i.text, "label": i.labels, "Comments": ["unsure"] if k < 2 else []}
        for k, i in enumerate(crowd())
    ]
    return Layout("admin.jsonl", lines(items), N, 5, 0)


def prodigy_ignored(rng: random.Random) -> Layout:
    """Prodigy's choices: what was ignored was not answered, whatever was ticked before."""
    options = [{"id": j, "text": name} for j, name in enumerate(LABELS)]
    items: list[dict[str, Any]] = []
    for k, item, who, said in views():
        about = {"_input_hash": 7 * k - 99, "_task_hash": 3 * k, "_session_id": f"tags-{who}"}
        about |= {"_view_id": "choice", "_timestamp": 1.7e9 + len(items)}
        ticked = [LABELS.index(name) for name in said]
        task = {"text": item.text, "options": options, "config": {"choice_style": "multiple"}}
        items.append({**task, "accept": ticked, "answer": "accept", **about, "_annotator_id": who})
    items.append({**items[0], "accept": [4], "answer": "ignore", "_annotator_id": "r9"})
    return Layout("tags.jsonl", lines(items), N, 5, 4)


def prodigy_binary(rng: random.Random) -> Layout:
    """Prodigy's `textcat.teach`: one label per row, accepted, rejected or ignored."""
    items = []
    for k, item, who, said in views():
        for name in LABELS:
            answer = "accept" if name in said else "reject" if rng.random() < 0.9 else "ignore"
            about = {"_input_hash": 7 * k, "_task_hash": len(items), "_annotator_id": who}
            items.append({"text": item.text, "label": name, "answer": answer, **about})
    return Layout("teach.jsonl", lines(items), N, 5, 4)


def attribute_ids(rng: random.Random) -> Layout:
    """Kaggle's iMet: attribute numbers with spaces between."""
    rows: Rows = [["id", "attribute_ids"]]
    for k, item in enumerate(crowd()):
        rows.append([f"{k * 7919:016x}", " ".join(str(LABELS.index(x)) for x in item.labels)])
    return Layout("train.csv", table(rows), N, 5, 0, has_features=False)


def target_numbers(rng: random.Random) -> Layout:
    """Kaggle's Human Protein Atlas: `Id,Target`, most cells with one number."""
    rows: Rows = [["Id", "Target"]]
    for k, item in enumerate(crowd()):
        numbers = [str(LABELS.index(x)) for x in item.labels]
        rows.append([f"0{k:07d}-bb99-11e8", " ".join(numbers[: 1 + (k % 3 == 0)])])
    names = {name for k, i in enumerate(crowd()) for name in i.labels[: 1 + (k % 3 == 0)]}
    return Layout("train_hpa.csv", table(rows), N, len(names), 0, has_features=False)


def planet_tags(rng: random.Random) -> Layout:
    rows: Rows = [["image_name", "tags"]]
    rows += [[f"train_{k}", " ".join(i.labels)] for k, i in enumerate(crowd())]
    return Layout("train_v2.csv", table(rows), N, 5, 0, has_features=False)


def crowdflower_rows(rng: random.Random) -> Layout:
    """Figure Eight's full report: a row per judgment, ticks on lines of their own."""
    header = "_unit_id,_created_at,_golden,_id,_missed,_tainted,_channel,_trust,_worker_id,_country"
    rows: Rows = [[*header.split(","), "_ip", "emotions", "emotions_gold", "tweet"]]
    for k, item, who, said in views():
        about = [7000 + k, "3/1/2020 10:00:00", "false", 10**9 + len(rows), "", "false", "elite"]
        place = [0.9, 4000 + int(who[1:]), rng.choice(["USA", "GBR"]), "10.0.0.1"]
        rows.append([*about, *place, "\n".join(said), "", item.text])
    return Layout("f1234.csv", table(rows), N, 5, 4)


def crowdflower_items(rng: random.Random) -> Layout:
    """Figure Eight's aggregated report: the majority and its confidence."""
    header = "_unit_id,_golden,_unit_state,_trusted_judgments,_last_judgment_at,emotion"
    rows: Rows = [[*header.split(","), "emotion:confidence", "tweet"]]
    for k, i in enumerate(crowd(single=True)):
        about = [7000 + k, "FALSE", "finalized", 3, "3/1/2020 10:00"]
        rows.append([*about, i.labels[0], round(rng.uniform(0.4, 1), 4), i.text])
    names = {i.labels[0] for i in crowd(single=True)}
    return Layout("a1234.csv", table(rows), N, len(names), 0)


def counted_votes(rng: random.Random) -> Layout:
    """Davidson's hate speech: how many of `count` people chose each class."""
    rows: Rows = [["", "count", "hate_speech", "offensive_language", "neither", "class", "tweet"]]
    for k in range(N):
        count = rng.choice([3, 3, 3, 6, 9])
        votes = [0, 0, 0]
        for _ in range(count):
            votes[rng.choice([k % 3, k % 3, rng.randrange(3)])] += 1
        rows.append([k, count, *votes, votes.index(max(votes)), text(rng)])
    return Layout("labeled_data.csv", table(rows), N, 3, 9)


def moderation_flags(rng: random.Random) -> Layout:
    """OpenAI's moderation set: 0/1 where a label was looked at, no key where it was not."""
    items = []
    for i in crowd():
        asked = [name for name in LABELS if rng.random() < 0.8]
        flags = {name[0].upper() * 2: int(name in i.labels) for name in asked}
        items.append({"prompt": i.text, **flags})
    return Layout("samples.jsonl", lines(items), N, 5, 0)


def arxiv_terms(rng: random.Random) -> Layout:
    terms = ["cs.CV", "cs.LG", "stat.ML", "cs.AI", "math.OC"]
    rows: Rows = [["titles", "summaries", "terms"]]
    for k in range(N):
        rows.append([text(rng), f"{text(rng)}\n{text(rng)}", str(rng.sample(terms, 1 + k % 3))])
    return Layout("arxiv_data.csv", table(rows), N, 5, 0)


def eurlex(rng: random.Random) -> Layout:
    """EUR-Lex as LexGLUE's source has it: concept numbers in a list, a text in many parts."""
    items = [
        {
            "celex_id": f"3{k:03d}R0001",
            "uri": f"http://publications.europa.eu/{k}",
            "type": "Regulation",
            "concepts": [str(192 + 7 * LABELS.index(name)) for name in i.labels],
            "title": text(rng),
            "header": text(rng),
            "main_body": [text(rng), text(rng)],
        }
        for k, i in enumerate(crowd())
    ]
    return Layout("eurlex.jsonl", lines(items), N, 5, 0)


def celeba(rng: random.Random) -> Layout:
    names = ["5_o_Clock_Shadow", "Arched_Eyebrows", "Bald", "Male", "Young"]
    rows: Rows = [["image_id", *names]]
    rows += [[f"{k:06d}.jpg", *rng.choices([-1, 1], k=5)] for k in range(N)]
    return Layout("list_attr_celeba.csv", table(rows), N, 5, 0, has_features=False)


def ground_truth_manifest(rng: random.Random) -> Layout:
    """SageMaker Ground Truth: class numbers of a job, their names in its metadata."""
    items = []
    for i in crowd():
        numbers = {name: LABELS.index(name) for name in i.labels}
        about = {
            "class-map": {str(j): name for name, j in numbers.items()},
            "confidence-map": {str(j): round(rng.random(), 2) for j in numbers.values()},
            "job-name": "labeling-job/tags",
            "type": "groundtruth/text-classification-multilabel",
            "human-annotated": "yes",
            "creation-date": "2023-01-05T10:00:00",
        }
        items.append({"source": i.text, "tags": list(numbers.values()), "tags-metadata": about})
    return Layout("output.manifest", lines(items), N, 5, 0)


def mace_table(rng: random.Random) -> Layout:
    """MACE: no header, a row per item, a column per annotator, empty where nobody asked."""
    rows = [
        [*(i.answers[w][0] if w in i.answers else "" for w in RATERS)] for i in crowd(single=True)
    ]
    return Layout("mace.csv", table(rows), N, 5, 4, has_features=False)


def semicolons_and_commas(rng: random.Random) -> Layout:
    """A spreadsheet's CSV where decimals have commas: numbers, and tags between commas."""
    rows: Rows = [["Nr.", "Länge", "Breite", "Höhe", "Schlagworte"]]
    for k, i in enumerate(crowd()):
        sizes = [f"{rng.uniform(1, 99):.2f}".replace(".", ",") for _ in range(3)]
        rows.append([k + 1, *sizes, ",".join(i.labels)])
    return Layout("messung.csv", table(rows, ";"), N, 5, 0)


def scored_toxicity(rng: random.Random) -> Layout:
    """As the Wikipedia comments' toxicity: a yes or no and a score of the same rater."""
    rows: list[list[Any]] = [["rev_id", "worker_id", "toxicity", "toxicity_score"]]
    for k, item in enumerate(crowd()):
        for who, said in item.answers.items():
            bad = "anger" in said
            rows.append([2232.0 + k, int(who[1:]), int(bad), -1.0 if bad else float(k % 3)])
    return Layout("toxicity.tsv", table(rows, "\t"), N, 1, 4, has_features=False)


def described_raters(rng: random.Random) -> Layout:
    """Rater rows with facts about the raters behind the labels."""
    header = ["comment_id", "annotator_id", "text", *(f"target_{x}" for x in LABELS)]
    rows: list[list[Any]] = [[*header, "annotator_age", "annotator_trans", "annotator_cis"]]
    for k, item in enumerate(crowd()):
        for who, said in item.answers.items():
            about = [20 + int(who[1:]), who == "r1", who != "r1"]
            rows.append(
                [k + 47777, int(who[1:]) + 100, item.text, *(x in said for x in LABELS), *about]
            )
    return Layout("hate_speech.csv", table(rows), N, 5, 4)


def skin_lesions(rng: random.Random) -> Layout:
    """HAM10000: several columns of a few names, the first is asked about."""
    rows: Rows = [["lesion_id", "image_id", "dx", "dx_type", "age", "sex", "localization"]]
    for k in range(N):
        about = [rng.choice(["histo", "confocal"]), rng.choice([45.0, 80.0, ""])]
        about += [rng.choice(["male", "female"]), rng.choice(["scalp", "ear", "back"])]
        rows.append([f"HAM_{k // 2:07d}", f"ISIC_{k + 27000:07d}", LABELS[k % 5], *about])
    return Layout("HAM10000_metadata.csv", table(rows), N, 5, 0)


def airlines(rng: random.Random) -> Layout:
    """Kaggle's airline tweets: a label, a reason, whose plane it was."""
    rows: Rows = [["tweet_id", "airline_sentiment", "airline_sentiment_confidence"]]
    rows[0] += ["negativereason", "airline", "name", "text"]
    for k in range(N):
        reason = ["Late Flight", "Lost Luggage"][k % 2] if k % 3 == 2 else ""
        said = ["neutral", "positive", "negative"][k % 3]
        about = [reason, ["United", "Delta"][k % 7 % 2], f"user{k}", "@x " + text(rng)]
        rows.append([570306133677760513 + k * 991, said, round(rng.random(), 4), *about])
    return Layout("Tweets.csv", table(rows), N, 3, 0)


def identities(rng: random.Random) -> Layout:
    """Jigsaw's identity annotations: several questions of a worker."""
    rows: Rows = [["id", "worker", "gender", "religion", "race_or_ethnicity"]]
    for k in range(N):
        for who in rng.sample([101, 202, 303, 404], 3):
            gender = " ".join(rng.sample(["male", "female", "transgender"], rng.randint(0, 2)))
            other = [rng.choice(["", "muslim", "jewish"]), rng.choice(["", "black", "white"])]
            rows.append([59848 + k, who, gender, *other])
    return Layout("identity.csv", table(rows), N, 3, 4, has_features=False)


def book_tags(rng: random.Random) -> Layout:
    """goodbooks-10k: a row per book and tag, and how often it was given."""
    rows: Rows = [["goodreads_book_id", "tag_id", "count"]]
    for k in range(N):
        tags = rng.sample([30574, 11305, 8717, 33114, 5207], 3)
        rows += [[k + 1, tag, rng.randint(1, 167697)] for tag in tags]
    return Layout("book_tags.csv", table(rows), N, 5, 0, has_features=False)


def bird_calls(rng: random.Random) -> Layout:
    """BirdCLEF's soundscapes: sites come again too, but only birds are several."""
    rows: Rows = [["row_id", "site", "audio_id", "seconds", "birds"]]
    for k in range(N):
        heard = " ".join(rng.sample(["amecro", "amerob", "norcar", "nocall"], 1 + k % 2))
        site = ["COR", "SSW"][k % 2]
        rows.append([f"{7019 + k // 10}_{site}_{k}", site, 7019 + k // 10, 5 * (k % 10), heard])
    return Layout("soundscapes.csv", table(rows), N, 4, 0)


def retina_levels(rng: random.Random) -> Layout:
    """EyePACS: a picture's name and the number of a class."""
    side = ["left", "right"]
    rows: Rows = [["image", "level"]]
    rows += [[f"{k // 2 + 10}_{side[k % 2]}", [0, 0, 1, 2, 3, 4][k % 6]] for k in range(N)]
    return Layout("trainLabels.csv", table(rows), N, 5, 0, has_features=False)


def frogs(rng: random.Random) -> Layout:
    """UCI's frog calls: family, genus and species behind the numbers."""
    rows: Rows = [["MFCCs_ 1", "MFCCs_ 2", "Family", "Genus", "Species", "RecordID"]]
    for k in range(N):
        names = [f"{'FGH'[k % 4 % 3]}idae", f"Genus{k % 4}", f"Species{k % 4}"]
        rows.append([rng.random(), rng.random(), *names, k // 8 + 1])
    return Layout("Frogs_MFCCs.csv", table(rows), N, 3, 0)


def three_subtasks(rng: random.Random) -> Layout:
    """OLID: three questions; NULL in two of them is no agreement."""
    rows: Rows = [["id", "tweet", "subtask_a", "subtask_b", "subtask_c"]]
    for k in range(N):
        second = rng.choice(["TIN", "UNT"]) if k % 2 else "NULL"
        third = rng.choice(["IND", "GRP"]) if second == "TIN" else "NULL"
        rows.append([86426 + k, "@USER " + text(rng), ["NOT", "OFF"][k % 2], second, third])
    return Layout("olid.tsv", table(rows, "\t"), N, 2, 0)


PUBLIC: tuple[Callable[[random.Random], Layout], ...] = (
    *(doccano_lists, prodigy_ignored, prodigy_binary, attribute_ids, target_numbers, planet_tags),
    *(crowdflower_rows, crowdflower_items, counted_votes, moderation_flags, arxiv_terms, eurlex),
    *(celeba, ground_truth_manifest, mace_table, semicolons_and_commas, scored_toxicity),
    *(described_raters,),
    skin_lesions,
    airlines,
    identities,
    book_tags,
    bird_calls,
    retina_levels,
    frogs,
    three_subtasks,
)
