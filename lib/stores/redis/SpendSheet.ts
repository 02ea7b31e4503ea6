/**
 * What `spend.lua` decides, in TypeScript: what tenants have spent on one day, over all processes. Each process tells what
 * it has spent in all, so that what is told twice counts once, and a sheet that was lost fills again. Pure.
 */
export class SpendSheet {
  readonly #totals = new Map<string, number>();
  readonly #told = new Map<string, number>();

  /** `spent`: by tenant, of this process. Whole numbers. Returns the total of each tenant. */
  tell(member: string, spent: readonly (readonly [tenant: string, amount: number])[]): number[] {
    return spent.map(([tenant, amount]) => {
      const own = `${member}:${tenant}`;
      const more = amount - (this.#told.get(own) ?? 0);
      const total = (this.#totals.get(tenant) ?? 0) + Math.max(0, more);
      if (more > 0) {
        this.#told.set(own, amount);
        this.#totals.set(tenant, total);
      }
      return total;
    });
  }
}
