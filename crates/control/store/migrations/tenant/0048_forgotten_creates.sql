-- A run that goes on may be told besides that creates of unknown outcome were looked for in vain. Whoever takes it leaves
-- 'resume': what the next attempt finds open, nobody has looked for.
ALTER TABLE runs DROP CONSTRAINT runs_wish_check;
ALTER TABLE runs ADD CONSTRAINT runs_wish_check CHECK (wish IN ('cancel', 'pause', 'resume', 'forget_creates'));
