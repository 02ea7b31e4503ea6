export function count(value: number): string;
export function rate(value: number): string;
export function percent(share: number): string;
export function money(value: number): string;
export function duration(ms: number): string;
export function clock(ms: number): string;
