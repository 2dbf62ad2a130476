-- A sign of life changes none of these columns, and so is no news.
CREATE TRIGGER run_changed AFTER UPDATE OF status, result, problem, wish, queued_at, began_at, last_seq ON runs
    FOR EACH ROW EXECUTE FUNCTION nimbus_core.run_changed();

-- How long units usually take is read from these few of many events.
CREATE INDEX run_events_units ON run_events (tenant_id, deployment, run) WHERE event ->> 'event' = 'unit';
-- And these are the log.
CREATE INDEX run_events_log ON run_events (tenant_id, deployment, run, seq)
    WHERE event ->> 'event' IN ('diagnostic', 'check');
