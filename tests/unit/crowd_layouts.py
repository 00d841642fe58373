"""Files of crowds, sounds, hospitals and field notes, whose columns have names of their own."""

import json
import random
from collections.abc import Callable
from typing import Any

from layouts import LABELS, RATERS, Layout, N, crowd, lines, table
from wild_layouts import text, views

Rows = list[list[Any]]
CODES = (4019, 4280, 42731, 41401, 25000)


def instruments_heard(rng: random.Random) -> Layout:
    """OpenMIC's answers: who hears which instrument in which clip; perhaps two in one clip."""
    rows: Rows = [["worker_id", "sample_key", "instrument", "response", "confidence"]]
    for k in range(N):
        for name in rng.sample(LABELS, 2):
            for who in rng.sample(RATERS, 3):
                said = rng.choice(["yes", "no", "maybe"])
                rows.append([who, f"{k:06d}_{k * 7680}", name, said, round(rng.random(), 3)])
    return Layout("individual_responses.csv", table(rows), N, 5, 4, has_features=False)


def instrument_relevance(rng: random.Random) -> Layout:
    """OpenMIC's summary: how likely an instrument is in a clip, of those that were asked about."""
    rows: Rows = [["sample_key", "instrument", "relevance", "num_responses"]]
    for k in range(N):
        for name in rng.sample(LABELS, 2):
            rows.append([f"{k:06d}_{k * 7680}", name, round(rng.random(), 5), rng.randint(1, 5)])
    return Layout("aggregated_labels.csv", table(rows), N, 5, 0, has_features=False)


def icd_codes(rng: random.Random) -> Layout:
    """MIMIC's diagnoses: a row per stay and code, and whose stay it was."""
    rows: Rows = [["ROW_ID", "SUBJECT_ID", "HADM_ID", "SEQ_NUM", "ICD9_CODE"]]
    for k in range(N):
        for place, code in enumerate(rng.sample(CODES, 3)):
            rows.append([len(rows) + 1296, 109 + k // 2, 172335 + 31 * k, place + 1, code])
    return Layout("DIAGNOSES_ICD.csv", table(rows), N, 5, 0, has_features=False)


def sound_events(rng: random.Random) -> Layout:
    """DCASE: a row per sound in a recording, with where it begins and ends."""
    rows: Rows = [["filename", "onset", "offset", "event_label"]]
    for k in range(N):
        for name in rng.sample(LABELS, 1 + k % 3):
            rows.append([f"Y{k:04d}_30.wav", 0.0, round(10 * rng.random(), 3), name])
    return Layout("strong.tsv", table(rows, "\t"), N, 5, 0, has_features=False)


def field_notes(rng: random.Random) -> Layout:
    """iNaturalist: users write observations; they are no raters of the taxon."""
    rows: Rows = [["id", "user_id", "url", "tag_list", "description", "latitude", "taxon_id"]]
    for k in range(N):
        tags = ", ".join(rng.sample(LABELS, 2)) if k % 3 else ""
        about = [text(rng) if k % 4 == 0 else "", 50 + rng.random(), 203 + k % 3]
        rows.append([9000 + k, rng.randint(1, 9), f"https://x.org/{k}", tags, *about])
    return Layout("observations.csv", table(rows), N, 5, 0)


def places_of_findings(rng: random.Random) -> Layout:
    """PadChest: lists of labels, and lists of where each of them is, as Python writes both."""
    rows: Rows = [["ImageID", "PatientID", "Report", "Labels", "LabelsLocalizationsBySentence"]]
    for k in range(N):
        found = rng.sample(LABELS, 1 + k % 2)
        where = str([[name, "loc right"] for name in found])
        rows.append([f"2053{k}_0.png", 839 + k // 2, text(rng), str(found), where])
    return Layout("PADCHEST.csv", table(rows), N, 5, 0)


def settled_answer(rng: random.Random) -> Layout:
    """DICES: yes and no of every rater, and beside them what experts settled."""
    rows: Rows = [["id", "item_id", "rater_id", "response", "safety_gold", "Q1_harm", "Q2_bias"]]
    for k, item, who, _ in views():
        said = rng.choices(["No", "Yes", "Unsure"], k=2)
        rows.append([len(rows), k, who, item.text, ["No", "Yes"][k % 2], *said])
    return Layout("diverse_safety.csv", table(rows), N, 2, 4)


def many_judgments(rng: random.Random) -> Layout:
    """An export of observations: who called each of them what."""
    rows: Rows = [["observation_id", "user_login", "created_at", "taxon_name", "current"]]
    for k, item in enumerate(crowd(single=True)):
        for who, (said, *_) in item.answers.items():
            when = f"2021-05-04T10:{rng.randint(0, 59):02d}:00Z"
            rows.append([9000 + k, f"user_{who}", when, said, "true"])
    return Layout("identifications.csv", table(rows), N, 5, 4, has_features=False)


def attribute_grid(rng: random.Random) -> Layout:
    """CUB's birds: no header; picture, attribute, 0/1, how certain, how long it took."""
    rows = [
        [k, attribute, rng.randint(0, 1), rng.randint(1, 4), round(30 * rng.random(), 3)]
        for k in range(1, N + 1)
        for attribute in range(1, 8)
    ]
    return Layout("image_attributes.txt", table(rows, " "), N, 7, 0, has_features=False)


def tag_genome(rng: random.Random) -> Layout:
    """MovieLens' genome: how well each tag fits each film."""
    rows: Rows = [["movieId", "tagId", "relevance"]]
    rows += [[k + 1, tag, round(rng.random(), 5)] for k in range(N) for tag in range(1, 8)]
    return Layout("genome-scores.csv", table(rows), N, 7, 0, has_features=False)


def hashed_users(rng: random.Random) -> Layout:
    """Snapshot Serengeti: users by their hash, which species and how many."""
    rows: Rows = [["ClassificationID", "UserID_Hash", "CaptureEventID", "Species", "Count"]]
    for k, _, who, (said, *_) in views(single=True):
        about = [f"{rng.getrandbits(90):x}", f"{int(who[1:]) * 7919**8:032x}", f"ASG{k:06d}"]
        rows.append([*about, said, rng.randint(1, 11)])
    return Layout("raw_data.csv", table(rows), N, 5, 4, has_features=False)


def rated_by_described(rng: random.Random) -> Layout:
    """D3: a rating of every annotator beside facts about them."""
    rows: Rows = [
        ["item_id", "comment", "annotator_id", "gender", "country", "toxic_rating", "care"]
    ]
    for k, item, who, _ in views():
        facts = [["M", "F"][int(who[1:]) % 2], ["IN", "BR"][int(who[1:]) // 3]]
        rows.append([f"J{k}", item.text, who, *facts, rng.randint(0, 4), int(who[1:])])
    return Layout("annotations.csv", table(rows), N, 5, 4)


def answers_of_fields(rng: random.Random) -> Layout:
    """MSP-Podcast: sounds by name, workers in each, and several fields of every worker's answer."""
    heard = {
        f"clip_{k:04d}.wav": {
            f"WORKER{int(who[1:]):08d}": {
                "EmoClass_Major": said[0],
                "EmoClass_Second": ",".join(rng.sample(LABELS, 2)),
                "EmoAct": rng.randint(1, 7),
            }
            for who, said in item.answers.items()
        }
        for k, item in enumerate(crowd(single=True))
    }
    return Layout("labels_detailed.json", json.dumps(heard), N, 5, 4, has_features=False)


def street_sounds(rng: random.Random) -> Layout:
    """SONYC: who hears what in which file of which sensor; -1 was not asked."""
    rows: Rows = [["sensor_id", "audio_filename", "annotator_id", "week"]]
    rows[0] += ["1_engine_presence", "1_engine_proximity", "2_drill_presence", "3_horn_presence"]
    for k, _, who, _ in views():
        near = rng.choice(["near", "far", "notsure"])
        heard = [rng.randint(0, 1), near, rng.choice([-1, 0, 1]), rng.randint(0, 1)]
        rows.append([k % 5, f"{k % 5:02d}_{k:06d}.wav", who, k % 52, *heard])
    return Layout("annotations.csv", table(rows), N, 3, 4)


def flags_alone(rng: random.Random) -> Layout:
    """RFMiD: an id, and nothing but 0/1."""
    rows: Rows = [["ID", "Disease_Risk", "DR", "ARMD", "MH"]]
    rows += [[k + 1, *rng.choices([0, 1], k=4)] for k in range(N)]
    return Layout("training_labels.csv", table(rows), N, 4, 0, has_features=False)


def second_labels(rng: random.Random) -> Layout:
    """BirdCLEF: the bird a recording is about, and a list of those behind it."""
    rows: Rows = [["primary_label", "secondary_labels", "author", "latitude", "filename"]]
    for k in range(N):
        first, *others = rng.sample(LABELS, 1 + k % 3)
        rows.append([first, str(others), "J", round(50 * rng.random(), 4), f"XC{k}.ogg"])
    return Layout("train_metadata.csv", table(rows), N, 5, 0)


def ticked_by_workers(rng: random.Random) -> Layout:
    """Toxicity ratings: each worker's yes and no, a score, and who they are."""
    items = [
        {
            "comment": item.text,
            "perspective_score": round(rng.random(), 4),
            "ratings": [
                {"worker_id": who, "toxic_score": rng.randint(0, 4), "gender": "Female"}
                | {f"is_{name}": name in said for name in LABELS}
                for who, said in item.answers.items()
            ],
        }
        for item in crowd()
    ]
    return Layout("toxicity_ratings.json", lines(items), N, 5, 4)


def coded_segments(rng: random.Random) -> Layout:
    """MAXQDA: a colour, a document, the code of what is marked in it."""
    rows: Rows = [["Color", "Document name", "Code", "Begin", "Segment", "Modified by"]]
    for k in range(N):
        code = rng.choice(LABELS)
        rows.append(["#ff00aa", f"Interview {k % 9}", code, 7 * k, text(rng), "ann"])
    return Layout("segments.csv", table(rows), N, 5, 0)


def codes_on_lines(rng: random.Random) -> Layout:
    """ATLAS.ti: the codes of a quotation, one on each line of the cell."""
    rows: Rows = [["ID", "Quotation Content", "Document", "Codes"]]
    for k in range(N):
        codes = "\n".join(rng.sample(LABELS, 1 + k % 3))
        rows.append([f"1:{k}", text(rng), "D1", codes])
    return Layout("quotations.csv", table(rows), N, 5, 0)


def sounds_and_splits(rng: random.Random) -> Layout:
    """VGGSound: no header; the film, the second, the label, and the part it belongs to."""
    part = ["train", "test"]
    rows = [[f"f_I2y{k}", k, f"{LABELS[k % 5]} sounds", rng.choice(part)] for k in range(N)]
    return Layout("vggsound.csv", table(rows), N, 5, 0, has_features=False)


def class_numbers_or_nothing(rng: random.Random) -> Layout:
    """cleanlab's table of annotators: the number of a class, or nothing."""
    people = [f"A{j:04d}" for j in range(6)]
    rows: Rows = [["", *people]]
    rows += [[k, *(rng.choice(["", 0.0, 1.0, 2.0]) for _ in people)] for k in range(N)]
    return Layout("multiannotator.csv", table(rows), N, 3, 6, has_features=False)


def present_or_absent(rng: random.Random) -> Layout:
    """A column per sign, said to be present or absent."""
    rows: Rows = [["subject", "notes", "tired", "anxious", "restless"]]
    rows += [[f"s{k}", text(rng), *rng.choices(["Present", "Absent"], k=3)] for k in range(N)]
    return Layout("signs.csv", table(rows), N, 3, 0)


def scored_by_a_model(rng: random.Random) -> Layout:
    """ToxicChat: columns of 0/1, and behind them a model's scores of all its own labels."""
    rows: Rows = [["conv_id", "user_input", "toxic", "jailbreaking", "refused", "moderation"]]
    for k in range(N):
        scores = [["sexual", round(rng.random(), 3)], ["violence", round(rng.random(), 3)]]
        rows.append([f"c{k}", text(rng), *rng.choices([0, 1], k=3), json.dumps(scores)])
    return Layout("toxic_chat.csv", table(rows), N, 3, 0)


def responses_by_label(rng: random.Random) -> Layout:
    """A row per item, rater and label, the yes or no in a column of any name."""
    rows: Rows = [["Item", "Rater", "Label", "Response", "Device"]]
    for i in crowd():
        rows += [
            [i.id, who, x, "Yes" if x in said else "No", rng.choice(["phone", "desk"])]
            for who, said in i.answers.items()
            for x in LABELS
        ]
    return Layout("responses.csv", table(rows), N, 5, 4, has_features=False)


def labels_of_programs(rng: random.Random) -> Layout:
    """What two programs and a person said, each in a column called so."""
    rows: Rows = [["Text", "clip_labels", "blip_labels", "human_labels"]]
    for i in crowd():
        rows.append([i.text, *(",".join(said) for said in i.answers.values())])
    return Layout("programs.csv", table(rows), N, 5, 3)


CROWD: tuple[Callable[[random.Random], Layout], ...] = (
    instruments_heard,
    instrument_relevance,
    icd_codes,
    sound_events,
    field_notes,
    places_of_findings,
    settled_answer,
    many_judgments,
    attribute_grid,
    tag_genome,
    hashed_users,
    rated_by_described,
    answers_of_fields,
    street_sounds,
    flags_alone,
    second_labels,
    ticked_by_workers,
    coded_segments,
    codes_on_lines,
    sounds_and_splits,
    class_numbers_or_nothing,
    present_or_absent,
    scored_by_a_model,
    responses_by_label,
    labels_of_programs,
)
