export { seededRandom } from './seededRandom.ts';
export { virtualRuntime } from './virtualRuntime.ts';
export type { VirtualRuntime } from './virtualRuntime.ts';
export type { VirtualRuntimeOptions } from './virtualRuntime.ts';
export type { Clock } from '../core/runtime.ts';
export type { Runtime } from '../core/runtime.ts';
export type { Scheduler } from '../core/runtime.ts';
