export type { CallObserver } from '../core/CallObserver.ts';
export type { CallStart } from '../core/CallObserver.ts';
export { openTelemetry } from './openTelemetry.ts';
