BEGIN TRANSACTION;
CREATE TABLE datasets (
	fingerprint TEXT NOT NULL, 
	name TEXT NOT NULL, 
	created TEXT NOT NULL, 
	n_instances INTEGER NOT NULL, 
	n_features INTEGER NOT NULL, 
	n_labels INTEGER NOT NULL, 
	n_candidates BIGINT NOT NULL, 
	is_sparse BOOLEAN NOT NULL, 
	has_truth BOOLEAN NOT NULL, machine TEXT, 
	PRIMARY KEY (fingerprint)
);
INSERT INTO "datasets" VALUES('58d7fb77a55d7c599f3340f9f61bce1707f0ef439db971a72173e42446156e22','small','2026-11-18T00:26:49.277198+00:00',4,3,2,5,0,0,'e28656f1c8ab4948b7eed0adc77f0f40');
CREATE TABLE decisions (
	id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, 
	uid TEXT NOT NULL, 
	fingerprint TEXT NOT NULL, 
	instance_id TEXT NOT NULL, 
	label TEXT NOT NULL, 
	verdict TEXT NOT NULL, 
	annotator TEXT NOT NULL, 
	time TEXT NOT NULL, 
	run_id TEXT, 
	confidence DOUBLE, 
	shown BOOLEAN NOT NULL, 
	seconds DOUBLE, 
	sampled BOOLEAN DEFAULT 0 NOT NULL, 
	adjudicates BOOLEAN DEFAULT 0 NOT NULL, 
	batch TEXT, received TEXT, 
	CONSTRAINT decisions_verdict CHECK (verdict IN ('keep', 'reject', 'unsure', 'undo')), 
	UNIQUE (uid), 
	FOREIGN KEY(fingerprint) REFERENCES datasets (fingerprint)
);
INSERT INTO "decisions" VALUES(1,'u0','58d7fb77a55d7c599f3340f9f61bce1707f0ef439db971a72173e42446156e22','1','label0','keep','ann','2026-11-18T00:26:49.306697+00:00','1m7p0s4j2tj11',0.5,1,NULL,0,0,NULL,NULL);
INSERT INTO "decisions" VALUES(2,'u1','58d7fb77a55d7c599f3340f9f61bce1707f0ef439db971a72173e42446156e22','1','label0','reject','ann','2026-11-18T00:26:49.310631+00:00','1m7p0s4j2tj11',0.5,1,NULL,0,0,NULL,NULL);
INSERT INTO "decisions" VALUES(3,'u2','58d7fb77a55d7c599f3340f9f61bce1707f0ef439db971a72173e42446156e22','1','label0','undo','ann','2026-11-18T00:26:49.314725+00:00','1m7p0s4j2tj11',0.5,1,NULL,0,0,NULL,NULL);
CREATE TABLE events (
	run_id TEXT NOT NULL, 
	seq INTEGER NOT NULL, 
	time TEXT NOT NULL, 
	kind TEXT NOT NULL, 
	data TEXT NOT NULL, 
	PRIMARY KEY (run_id, seq), 
	CONSTRAINT events_seq CHECK (seq >= 0), 
	FOREIGN KEY(run_id) REFERENCES runs (id) ON DELETE CASCADE
);
INSERT INTO "events" VALUES('1m7p0s4j2tj11',0,'2026-11-18T00:26:49.294104+00:00','run_started','{"kind": "run_started", "config": {"alpha": 0.25, "beta": 0.01, "eta": 1.0, "gamma": 0.01, "n_steps": 200, "k": 10, "rho": 3.0, "balance": "minmax", "disambiguation": "alternating", "loss": "bce", "hidden": null, "epochs": 30, "batch_size": 32, "learning_rate": 0.01, "momentum": 0.9, "weight_decay": 5e-05, "standardize": true, "unit_rows": false, "members": 1, "landmarks": 0, "rounds": 0, "threshold": 0.7, "seed": 0, "device": "auto"}, "fingerprint": "58d7fb77a55d7c599f3340f9f61bce1707f0ef439db971a72173e42446156e22", "n_instances": 4, "n_features": 3, "n_labels": 2, "device": "cpu", "versions": {"python": "3.11"}}');
INSERT INTO "events" VALUES('1m7p0s4j2tj11',1,'2026-11-18T00:26:49.294127+00:00','graphs_built','{"kind": "graphs_built", "seconds": 0.1, "search": "exact", "recall": null, "n_edges": 4, "n_isolated": 0, "n_label_edges": 1}');
INSERT INTO "events" VALUES('1m7p0s4j2tj11',2,'2026-11-18T00:26:49.294144+00:00','epoch','{"kind": "epoch", "epoch": 1, "loss": 0.5, "objective": {"prediction": 1.0, "candidates": 2.0, "instance_graph": 3.0, "label_graph": 4.0}, "cells_changed": 3, "entropy": 0.1, "seconds": {"train": 0.1}, "metrics": null}');
INSERT INTO "events" VALUES('1m7p0s4j2tj11',3,'2026-11-18T00:26:49.294155+00:00','epoch','{"kind": "epoch", "epoch": 2, "loss": 0.5, "objective": {"prediction": 1.0, "candidates": 2.0, "instance_graph": 3.0, "label_graph": 4.0}, "cells_changed": 3, "entropy": 0.1, "seconds": {"train": 0.1}, "metrics": null}');
INSERT INTO "events" VALUES('1m7p0s4j2tj11',4,'2026-11-18T00:26:49.303378+00:00','run_ended','{"kind": "run_ended", "state": "finished", "epochs": 2, "seconds": 1.0, "error": null}');
CREATE TABLE label_changes (
	id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, 
	uid TEXT NOT NULL, 
	fingerprint TEXT NOT NULL, 
	kind TEXT NOT NULL, 
	label TEXT NOT NULL, 
	name TEXT NOT NULL, 
	annotator TEXT NOT NULL, 
	time TEXT NOT NULL, 
	CONSTRAINT label_changes_kind CHECK (kind IN ('rename', 'merge', 'undo')), 
	UNIQUE (uid), 
	FOREIGN KEY(fingerprint) REFERENCES datasets (fingerprint)
);
INSERT INTO "label_changes" VALUES(1,'e033c6e2311a4839a9cf93c43802ecaf','58d7fb77a55d7c599f3340f9f61bce1707f0ef439db971a72173e42446156e22','rename','label1','sea','ann','2026-11-18T00:26:49.331850+00:00');
CREATE TABLE leases (
	fingerprint TEXT NOT NULL, 
	instance_id TEXT NOT NULL, 
	annotator TEXT NOT NULL, 
	until DOUBLE NOT NULL, 
	answered BOOLEAN NOT NULL, 
	PRIMARY KEY (fingerprint, instance_id, annotator), 
	FOREIGN KEY(fingerprint) REFERENCES datasets (fingerprint)
);
INSERT INTO "leases" VALUES('58d7fb77a55d7c599f3340f9f61bce1707f0ef439db971a72173e42446156e22','1','ann',1.79496190932262778276e+09,0);
CREATE TABLE machines (
	id TEXT NOT NULL, 
	name TEXT NOT NULL, 
	PRIMARY KEY (id)
);
INSERT INTO "machines" VALUES('74b0eb7deb834547bf3370b0fe80bb85','one');
CREATE TABLE runs (
	id TEXT NOT NULL, 
	fingerprint TEXT NOT NULL, 
	name TEXT NOT NULL, 
	note TEXT NOT NULL, 
	state TEXT NOT NULL, 
	command TEXT, 
	config TEXT NOT NULL, 
	created TEXT NOT NULL, 
	started TEXT, 
	ended TEXT, 
	epoch INTEGER NOT NULL, 
	error TEXT, 
	pid INTEGER, 
	pid_started DOUBLE, 
	heartbeat DOUBLE, 
	deleted TEXT, machine TEXT, claim INTEGER NOT NULL DEFAULT 0, 
	PRIMARY KEY (id), 
	CONSTRAINT runs_state CHECK (state IN ('queued', 'running', 'paused', 'finished', 'stopped', 'failed')), 
	CONSTRAINT runs_command CHECK (command IN ('pause', 'resume', 'stop')), 
	FOREIGN KEY(fingerprint) REFERENCES datasets (fingerprint)
);
INSERT INTO "runs" VALUES('1m7p0s4j2tj11','58d7fb77a55d7c599f3340f9f61bce1707f0ef439db971a72173e42446156e22','first','a note','finished',NULL,'{"alpha":0.25,"beta":0.01,"eta":1.0,"gamma":0.01,"n_steps":200,"k":10,"rho":3.0,"balance":"minmax","disambiguation":"alternating","loss":"bce","hidden":null,"epochs":30,"batch_size":32,"learning_rate":0.01,"momentum":0.9,"weight_decay":0.00005,"standardize":true,"unit_rows":false,"members":1,"landmarks":0,"rounds":0,"threshold":0.7,"seed":0,"device":"auto"}','2026-11-18T00:26:49.282759+00:00','2026-11-18T00:26:49.291149+00:00','2026-11-18T00:26:49.302648+00:00',2,NULL,1,1.0,1.79496160929127931589e+09,NULL,'e28656f1c8ab4948b7eed0adc77f0f40',0);
CREATE TABLE schema_version (
	version INTEGER NOT NULL, 
	applied TEXT NOT NULL, 
	PRIMARY KEY (version)
);
INSERT INTO "schema_version" VALUES(2,'2026-11-18T00:26:49.245850+00:00');
INSERT INTO "schema_version" VALUES(3,'2026-11-18T01:34:19.090659+00:00');
INSERT INTO "schema_version" VALUES(4,'2026-11-18T10:26:58.415984+00:00');
CREATE TABLE studies (
	id TEXT NOT NULL, 
	fingerprint TEXT NOT NULL, 
	name TEXT NOT NULL, 
	created TEXT NOT NULL, 
	settings TEXT NOT NULL, 
	PRIMARY KEY (id), 
	FOREIGN KEY(fingerprint) REFERENCES datasets (fingerprint)
);
CREATE INDEX ix_runs_state ON runs (state);
CREATE INDEX decisions_cell ON decisions (fingerprint, instance_id, label);
DELETE FROM "sqlite_sequence";
INSERT INTO "sqlite_sequence" VALUES('decisions',3);
INSERT INTO "sqlite_sequence" VALUES('label_changes',1);
COMMIT;
