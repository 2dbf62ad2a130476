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

interface Props {
  children: (place: Place | null, error: Error | null) => ReactNode;
}

export function PlaceProvider({ children }: Props) {
  const me = useQuery(meQuery);
  const tenants = useQuery(tenantsQuery);
  const search = useSearch({ strict: false }) as { t?: string };
  const place = useMemo<Place | null>(() => {
    if (!me.data) return null;
    const all = tenants.data ?? [me.data.tenant];
    const found = search.t ? all.find((one) => one.slug === search.t || one.id === search.t) : undefined;
    const tenant = found ?? me.data.tenant;
    return { me: me.data, tenant, tenants: all, named: tenant.id === me.data.tenant.id ? undefined : tenant.id };
  }, [me.data, tenants.data, search.t]);
  return <PlaceContext.Provider value={place}>{children(place, me.error)}</PlaceContext.Provider>;
}
