import { anthropicDialect } from './anthropic.ts';
import { azureDialect } from './azure.ts';
import type { Dialect } from './Dialect.ts';
import { geminiDialect } from './gemini.ts';
import { groqDialect } from './groq.ts';
import { noDialect } from './none.ts';
import { openaiDialect } from './openai.ts';

/** The dialects that have a name. */
export const DIALECTS: Readonly<Record<string, Dialect>> = {
  openai: openaiDialect,
  azure: azureDialect,
  anthropic: anthropicDialect,
  gemini: geminiDialect,
  groq: groqDialect,
  none: noDialect,
};
