-- A run that ended and is asked to go on has another life, and each life a workflow of its own.
ALTER TABLE runs ADD COLUMN life integer NOT NULL DEFAULT 1;
