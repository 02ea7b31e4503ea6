/** What is new of `text` at `place`, where it follows what has been said there. A `whole` is said in one piece. */
export type RestOf = (place: string, text: string, kind: 'text' | 'whole') => string;
