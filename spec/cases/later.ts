/** Cases whose subject comes with a later part, each with the reason. They are shown as pending, by name. */
export const LATER: Readonly<Record<string, string>> = {};

/** Forms without a spec so far. */
export const LATER_FORMS: Readonly<Record<string, string>> = {};
