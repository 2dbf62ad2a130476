/** Who, where and may they: read once by the frame, used by every page. */
import { useQuery } from "@tanstack/react-query";
import { useSearch } from "@tanstack/react-router";
import { createContext, useContext, useMemo } from "react";
import type { ReactNode } from "react";

import type { PermissionKey } from "../../api/generated/openapi";
import { meQuery, tenantsQuery } from "../../api/queries/session";
import type { Me, Tenant } from "../../api/queries/session";

interface Place {
  me: Me;
  tenant: Tenant;
  tenants: Tenant[];
  /** What requests name; absent for one's own tenant. */
  named: string | undefined;
}

const PlaceContext = createContext<Place | null>(null);

export function usePlace(): Place {
  const place = useContext(PlaceContext);
  if (!place) throw new Error("there is no place outside of the frame");
  return place;
}

/** Why an act is off; nothing if it may be done. */
export function useMay(): (permission: PermissionKey) => string | null {
  const { me } = usePlace();
  return useMemo(() => {
    const held = new Set<string>(me.permissions);
    return (permission) => (held.has(permission) ? null : `You need ${permission}. Ask an administrator of this tenant.`);
  }, [me]);
}

export function labelOf(tenant: Tenant): string {
  return tenant.name || tenant.slug || "Operator";
}

/** The tenant that an address names, among those that one sees: one's own where it names none, nothing where it is not there. */
export function tenantOf(wanted: string | undefined, own: Tenant, all: Tenant[]): Tenant | null {
  if (!wanted) return own;
  return [own, ...all].find((one) => one.id === wanted || one.slug === wanted) ?? null;
}

interface Props {
  /** `lost` where the address names a tenant that is not there, or that one may not see. */
  children: (place: Place | null, error: Error | null, lost: boolean) => ReactNode;
}

export function PlaceProvider({ children }: Props) {
  const me = useQuery(meQuery);
  const tenants = useQuery(tenantsQuery);
  const search = useSearch({ strict: false }) as { t?: string };
  // While it is not known which tenant is meant nothing is asked for: an address never shows another tenant's things.
  const known = useMemo(() => tenants.data ?? (tenants.isError ? [] : null), [tenants.data, tenants.isError]);
  const tenant = useMemo(() => (me.data ? tenantOf(search.t, me.data.tenant, known ?? []) : null), [me.data, known, search.t]);
  const place = useMemo<Place | null>(() => {
    if (!me.data || !tenant) return null;
    return { me: me.data, tenant, tenants: known ?? [me.data.tenant], named: tenant.id === me.data.tenant.id ? undefined : tenant.id };
  }, [me.data, known, tenant]);
  const lost = Boolean(me.data && known && !tenant);
  return <PlaceContext.Provider value={place}>{children(place, me.error, lost)}</PlaceContext.Provider>;
}
