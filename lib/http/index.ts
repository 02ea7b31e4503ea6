export { encodeServerSentEvent } from './ServerSentEvent.ts';
export type { ServerSentEvent } from './ServerSentEvent.ts';
