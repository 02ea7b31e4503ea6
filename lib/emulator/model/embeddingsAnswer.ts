import { hashText } from './answerText.ts';
import { seededRandom } from '../../core/seededRandom.ts';
import type { RequestFacts } from './request.ts';

const DEFAULT_DIMENSIONS = 16;
const MOST_DIMENSIONS = 4_096;

/** The answer of `/v1/embeddings`: unit vectors, the same for the same text and seed. */
export function embeddingsBody(facts: RequestFacts, seed: number): unknown {
  const { body } = facts.request;
  const { input, dimensions } = body;
  // A list of numbers is one text that the caller has cut into tokens.
  const texts = Array.isArray(input) && typeof input[0] !== 'number' ? (input as readonly unknown[]) : [input];
  const length = typeof dimensions === 'number' ? Math.min(dimensions, MOST_DIMENSIONS) : DEFAULT_DIMENSIONS;
  return {
    object: 'list',
    model: facts.model,
    data: texts.map((text, index) => {
      const vector = unitVector(typeof text === 'string' ? text : JSON.stringify(text), length, seed);
      const embedding = body['encoding_format'] === 'base64' ? base64(vector) : Array.from(vector);
      return { object: 'embedding', index, embedding };
    }),
    usage: { prompt_tokens: facts.promptTokens, total_tokens: facts.promptTokens },
  };
}

function unitVector(text: string, length: number, seed: number): Float32Array {
  const random = seededRandom(hashText(text, seed));
  const vector = Float32Array.from({ length }, () => random() - 0.5);
  const norm = Math.hypot(...vector) || 1;
  return vector.map((value) => value / norm);
}

function base64(vector: Float32Array): string {
  const bytes = new Uint8Array(vector.buffer);
  let binary = '';
  for (const byte of bytes) binary += String.fromCharCode(byte);
  return btoa(binary);
}
