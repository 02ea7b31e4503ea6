export { classifyErrorObject, classifyInStream, classifyResponse } from './classifyResponse.ts';
export type { HttpFailure, StreamContext } from './classifyResponse.ts';
export { answerBehind, classifyThrown } from './classifyThrown.ts';
export type { ThrownContext } from './classifyThrown.ts';
export { causeOf, redact } from './redact.ts';
