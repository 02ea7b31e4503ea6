export { seededRandom } from './seededRandom.ts';
export { virtualRuntime } from './virtualRuntime.ts';
export type { VirtualRuntime } from './virtualRuntime.ts';
export type { VirtualRuntimeOptions } from './virtualRuntime.ts';
