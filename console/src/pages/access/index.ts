/** The pages of administration, loaded together. */
export { AuditPage } from "./AuditPage";
export { CloudAccountsPage } from "./CloudAccountsPage";
export { GroupsPage } from "./GroupsPage";
export { KeysPage } from "./KeysPage";
export { RolesPage } from "./RolesPage";
export { TenantPage, TenantsPage } from "./TenantPages";
export { UserPage, UsersPage } from "./UserPages";
