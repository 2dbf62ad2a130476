/**
 * Processes objects that arrived in the data bucket.
 *
 * Each message of the queue tells of one object. What fails is reported message by message, so that
 * only those come back, and go to the dead-letter queue when they fail too often.
 */
export async function handler(event) {
  const batchItemFailures = [];
  for (const record of event.Records ?? []) {
    try {
      process(JSON.parse(record.body));
    } catch (error) {
      console.error(
        JSON.stringify({ message: "failed", id: record.messageId, error: String(error) }),
      );
      batchItemFailures.push({ itemIdentifier: record.messageId });
    }
  }
  return { batchItemFailures };
}

/** The place for the work itself; until then, what arrived is written to the log. */
function process({ detail }) {
  if (!detail?.bucket?.name || !detail?.object?.key) {
    throw new Error("the message tells of no object");
  }
  const { bucket, object } = detail;
  console.log(
    JSON.stringify({ message: "arrived", bucket: bucket.name, key: object.key, size: object.size }),
  );
}
