/** Cases that do not fit this design, each with the reason. A case listed here is skipped by name, never silently. */
export const UNFIT: Readonly<Record<string, string>> = {};
