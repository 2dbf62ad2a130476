/** Views of a list that a person keeps under a name: what stands in the address, without the tenant. */
export interface SavedView {
  name: string;
  search: Record<string, string>;
}

type Place = Pick<Storage, "getItem" | "setItem">;

function keyOf(person: string, page: string): string {
  return `nimbus.views.${person}.${page}`;
}

export function readViews(place: Place, person: string, page: string): SavedView[] {
  try {
    const kept: unknown = JSON.parse(place.getItem(keyOf(person, page)) ?? "[]");
    return Array.isArray(kept) ? kept.filter(isView) : [];
  } catch {
    return [];
  }
}

function isView(value: unknown): value is SavedView {
  const view = value as SavedView | null;
  return typeof view?.name === "string" && typeof view.search === "object" && view.search !== null;
}

/** A second view of the same name replaces the first. */
export function keepView(place: Place, person: string, page: string, view: SavedView): SavedView[] {
  const views = [...readViews(place, person, page).filter((one) => one.name !== view.name), view];
  views.sort((a, b) => a.name.localeCompare(b.name));
  place.setItem(keyOf(person, page), JSON.stringify(views));
  return views;
}

export function dropView(place: Place, person: string, page: string, name: string): SavedView[] {
  const views = readViews(place, person, page).filter((one) => one.name !== name);
  place.setItem(keyOf(person, page), JSON.stringify(views));
  return views;
}

/** What of an address makes the view: all but the tenant, which a view does not choose. */
export function viewOf(search: Record<string, unknown>): Record<string, string> {
  const kept: Record<string, string> = {};
  for (const [name, value] of Object.entries(search).sort(([a], [b]) => a.localeCompare(b))) {
    if (name !== "t" && typeof value === "string" && value !== "") kept[name] = value;
  }
  return kept;
}
