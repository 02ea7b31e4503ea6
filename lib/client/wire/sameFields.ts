import type { Fields } from '../CallPlan.ts';

/** Whether the fields are those that came. `stream: false` is as good as none. */
export function sameFields(request: Fields, came: Fields): boolean {
  const names = new Set([...Object.keys(request), ...Object.keys(came)]);
  for (const name of names) {
    if (name === 'stream' && !request[name] && !came[name]) continue;
    if (request[name] !== came[name]) return false;
  }
  return true;
}
