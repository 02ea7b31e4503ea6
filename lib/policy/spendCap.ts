import type { Policy } from './Policy.ts';

/** What a tenant may spend a day: its own cap, or that of `default`. `Infinity` for none. */
export function spendCap({ spend }: Policy, tenant: string | undefined): number {
  const { perTenantPerDay: caps } = spend;
  const own = tenant !== undefined && Object.hasOwn(caps, tenant) ? caps[tenant] : undefined;
  return own ?? caps.default;
}
