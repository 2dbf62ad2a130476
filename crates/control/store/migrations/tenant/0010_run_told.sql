-- The request that asked for a run: what is told of the run carries it.
ALTER TABLE runs ADD COLUMN trace_id text;

-- Not for runs that a restore brings back.
CREATE TRIGGER run_queued AFTER INSERT ON runs
    FOR EACH ROW WHEN (NEW.status = 'queued') EXECUTE FUNCTION nimbus_core.run_changed();
