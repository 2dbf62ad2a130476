/** What people have reviewed in a plan: one's own ticks, and who else has looked. Kept on the server. */
import { useQuery } from "@tanstack/react-query";

import { marksQuery, useSetMark } from "../../api/queries/reviews";
import { useSay } from "../../components/Toasts";

export interface Marks {
  has: (item: string, digest: string) => boolean;
  /** Others who have looked at the same. */
  others: (item: string, digest: string) => string[];
  set: (item: string, digest: string, on: boolean) => void;
}

export function useMarks(tenant: string | undefined, run: string, person: string): Marks {
  const marks = useQuery(marksQuery(tenant, run)).data ?? [];
  const change = useSetMark(tenant, run, person);
  const say = useSay();
  const same = (item: string, digest: string) => marks.filter((mark) => mark.item === item && mark.digest === digest);
  return {
    has: (item, digest) => same(item, digest).some((mark) => mark.person === person),
    others: (item, digest) => same(item, digest).filter((mark) => mark.person !== person).map((mark) => mark.name ?? "somebody of a tenant above"),
    set: (item, digest, on) => change.mutate({ item, digest, on }, { onError: (error) => say(error.message, true) }),
  };
}
