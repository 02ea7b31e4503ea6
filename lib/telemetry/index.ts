export type { CallObserver } from '../core/CallObserver.ts';
export type { CallStart } from '../core/CallObserver.ts';
export { openTelemetry } from './openTelemetry.ts';
export type { ShutdownCause } from './StartTelemetryOptions.ts';
export type { StartTelemetryOptions } from './StartTelemetryOptions.ts';
export { TELEMETRY_DEFAULTS } from './StartTelemetryOptions.ts';
export { startTelemetry } from './startTelemetry.ts';
export type { Telemetry } from './startTelemetry.ts';
