/** What to do when a stream fails after its first value. */
export type MidStreamMode = 'fail' | 'restart' | 'continue';

export const MID_STREAM_MODES: readonly MidStreamMode[] = ['fail', 'restart', 'continue'];
