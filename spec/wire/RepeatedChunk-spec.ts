import { expect } from 'chai';
import fc from 'fast-check';
import { RepeatedChunk } from '../../lib/wire/RepeatedChunk.ts';
import { heapInUse } from '../helpers/heap.ts';

type Fields = Record<string, unknown>;

const choice = (content: unknown, more: Fields = {}, delta: Fields = {}): Fields => ({
  index: 0,
  delta: { ...delta, content },
  logprobs: null,
  finish_reason: null,
  ...more,
});
const chunk = (content: unknown, more: Fields = {}): Fields => ({
  id: 'c-1',
  object: 'chat.completion.chunk',
  choices: [choice(content)],
  usage: null,
  ...more,
});
const padded = (content: string, obfuscation: string): Fields => chunk(content, { obfuscation });

describe('RepeatedChunk', () => {
  /** What each chunk adds to the one before, as far as that is known. Those of which it is not known are parsed, and learned from. */
  function textsOf(...chunks: readonly (Fields | string)[]): (string | undefined)[] {
    const repeated = new RepeatedChunk();
    return chunks.map((each) => {
      const data = typeof each === 'string' ? each : JSON.stringify(each);
      const text = repeated.textOf(data);
      if (text === undefined) repeated.learn(data, parsed(data));
      return text;
    });
  }
  const parsed = (data: string): unknown => {
    try {
      return JSON.parse(data);
    } catch {
      return undefined;
    }
  };
  const unknown = undefined;

  it('knows the text of a chunk that is the last one in all else', () => {
    expect(textsOf(chunk('Hel'), chunk('lo'), chunk(' wörld €'))).to.deep.equal([unknown, 'lo', ' wörld €']);
  });

  it('gives texts that keep nothing of their chunks', async () => {
    const repeated = new RepeatedChunk();
    const filler = 'x'.repeat(50_000);
    const dataOf = (content: string): string => JSON.stringify(chunk(content, { filler }));
    repeated.learn(dataOf('Hello, all of you'), chunk('Hello, all of you', { filler }));
    const texts: (string | undefined)[] = [];
    const before = await heapInUse();
    for (let at = 0; at < 200; at++) texts.push(repeated.textOf(dataOf(`, and you too, number ${at}`)));
    expect((await heapInUse()) - before).to.be.below(2_000_000);
    expect(texts.at(-1)).to.equal(', and you too, number 199');
  });

  /** What each known chunk is made into, as JSON and by its parts. */
  function madeOf(...chunks: readonly Fields[]): unknown[] {
    const repeated = new RepeatedChunk();
    return chunks.map((each) => {
      const data = JSON.stringify(each);
      const text = repeated.textOf(data);
      if (text === undefined) repeated.learn(data, parsed(data));
      return text === undefined ? undefined : repeated.mould?.cast(data, text);
    });
  }

  it('makes of a known chunk what the parser would make of it', () => {
    const more = { service_tier: 'default', system_fingerprint: null, created: 7, ['__proto__']: 1 };
    const chunks = [
      chunk('Hel', more),
      chunk('lo', more),
      chunk(' all of you, how are you', more),
      padded('a', 'x'),
      padded('b', 'abcdef'),
      padded(' all of you, how are you', ''),
      padded('c', 'padding of more than a few characters'),
      chunk('d', { choices: [choice('d', {}, { role: 'assistant', refusal: null })] }),
      chunk('e', { choices: [choice('e', {}, { role: 'assistant', refusal: null })] }),
    ];
    const made = madeOf(...chunks);
    expect(made.flatMap((each, at) => (each === undefined ? [at] : []))).to.deep.equal([0, 3, 7]);
    for (const [at, each] of made.entries()) {
      if (each !== undefined) expect(JSON.stringify(each)).to.equal(JSON.stringify(chunks[at]));
    }
  });

  it('makes chunks that share nothing with each other, nor with the one that was parsed', () => {
    const repeated = new RepeatedChunk();
    const [first, ...others] = ['a', 'b', 'c'].map((text) => JSON.stringify(chunk(text)));
    const owned = parsed(first as string);
    repeated.learn(first as string, owned);
    type Made = { id: string; choices: { index: number; delta: Fields }[] };
    const spoil = (made: Made): void => {
      made.id = 'spoilt';
      const [only] = made.choices;
      Object.assign(only as object, { index: 9 });
      Object.assign((only as Made['choices'][0]).delta, { role: 'spoilt' });
      made.choices.push(only as Made['choices'][0]);
    };
    spoil(owned as Made);
    for (const data of others) {
      const made = repeated.mould?.cast(data, repeated.textOf(data) as string) as Made;
      expect(JSON.stringify(made)).to.equal(data);
      spoil(made);
    }
  });

  it('leaves chunks to the parser that have more parts than copies may share', () => {
    const parts: readonly ((content: string) => Fields)[] = [
      (content) => chunk(content, { filter: {} }),
      (content) => chunk(content, { filters: [] }),
      (content) => chunk(content, { choices: [choice(content, { logprobs: { content: [] } })] }),
    ];
    for (const made of parts) {
      const repeated = new RepeatedChunk();
      repeated.learn(JSON.stringify(made('a')), made('a'));
      expect(repeated.textOf(JSON.stringify(made('b')))).to.equal('b');
      expect(repeated.mould).to.equal(undefined);
    }
  });

  it('knows it whatever the length of the padding', () => {
    const chunks = [
      padded('Hel', 'abc'),
      padded('lo', ''),
      padded('!', 'abcdefgh'),
      padded('', 'ab'),
      padded('?', 'a'),
    ];
    expect(textsOf(...chunks)).to.deep.equal([unknown, 'lo', '!', unknown, '?']);
  });

  it('knows it with white space between the fields', () => {
    const spaced = (content: string): string => JSON.stringify(chunk(content), undefined, 1);
    expect(textsOf(spaced('Hel'), spaced('lo'))).to.deep.equal([unknown, 'lo']);
  });

  it('leaves a text with escapes to the parser, and knows the next one', () => {
    for (const text of ['a "b"', 'a\nb', '\\', 'a\u0007']) {
      expect(textsOf(chunk('Hel'), chunk(text), chunk('lo')), text).to.deep.equal([unknown, unknown, 'lo']);
    }
  });

  it('leaves alone what is no JSON', () => {
    const whole = JSON.stringify(chunk('lo'));
    for (const broken of [whole.replace('lo', 'l\to'), whole.slice(0, -1), `${whole}}`, whole.replace('lo"', 'lo')]) {
      expect(textsOf(chunk('Hel'), broken), broken).to.deep.equal([unknown, unknown]);
    }
    const cut = JSON.stringify(padded('lo', 'abc'));
    for (const broken of [cut.replace('abc', 'a\tc'), cut.replace('abc"', 'abc'), cut.replace('abc', 'a\\"')]) {
      expect(textsOf(padded('Hel', 'abc'), broken), broken).to.deep.equal([unknown, unknown]);
    }
  });

  const others: Readonly<Record<string, Fields>> = {
    'another id': chunk('lo', { id: 'c-2' }),
    'an end': chunk('lo', { choices: [choice('lo', { finish_reason: 'stop' })] }),
    usage: chunk('lo', { usage: { total_tokens: 3 } }),
    'more after the text': chunk('lo', { choices: [choice('lo', { logprobs: { content: [] } })] }),
    'an end of as many characters': chunk('lo', { choices: [choice('lo', { finish_reason: 'no' })] }),
    'more beside the text': chunk('lo', { choices: [{ ...choice('lo'), delta: { content: 'lo', reasoning: 'so' } }] }),
    'no text': chunk(''),
    'no content': chunk(null),
    'no choice': { choices: [null] },
  };
  for (const [name, other] of Object.entries(others)) {
    it(`does not know a chunk with ${name}`, () => {
      expect(textsOf(chunk('Hel'), other)).to.deep.equal([unknown, unknown]);
    });
  }

  const unlearnable: Readonly<Record<string, (content: string) => Fields>> = {
    'ends a choice': (content) => chunk(content, { choices: [choice(content, { finish_reason: 'stop' })] }),
    'is of another choice': (content) => chunk(content, { choices: [choice(content, { index: 1 })] }),
    'has no choice': () => ({ choices: [null], content: 'a' }),
    'has two choices': (content) => chunk(content, { choices: [choice(content), choice('b')] }),
    'counts usage': (content) => chunk(content, { usage: { total_tokens: 3 } }),
    'counts usage in a choice': (content) => chunk(content, { choices: [choice(content, { usage: {} })] }),
    'counts usage as Groq does': (content) => chunk(content, { x_groq: { usage: {} } }),
    'tells of an error': (content) => chunk(content, { error: { message: 'no' } }),
    'tells of an error in a choice': (content) => chunk(content, { choices: [choice(content, { error: {} })] }),
    'has a text beside its delta': (content) => chunk(content, { choices: [choice(content, { text: 'x' })] }),
    'has a message beside its delta': (content) => chunk(content, { choices: [choice(content, { message: {} })] }),
    'has reasoning too': (content) => chunk(content, { choices: [choice(content, {}, { reasoning: 'so' })] }),
    'has tool calls too': (content) => chunk(content, { choices: [choice(content, {}, { tool_calls: [] })] }),
  };
  for (const [name, made] of Object.entries(unlearnable)) {
    it(`learns nothing from a chunk that ${name}`, () => {
      expect(textsOf(made('Hel'), made('lo'))).to.deep.equal([unknown, unknown]);
    });
  }

  it('learns nothing from a text that is none of the delta', () => {
    const other = (content: string): Fields => ({ choices: [{ index: 0, delta: {} }], content });
    expect(textsOf(other('Hel'), other('lo'))).to.deep.equal([unknown, unknown]);
  });

  it('takes fields of a delta that hold nothing for what they are', () => {
    const made = (content: string): Fields =>
      chunk(content, { choices: [choice(content, {}, { role: 'assistant', refusal: null, reasoning_content: '' })] });
    expect(textsOf(made('Hel'), made('lo'))).to.deep.equal([unknown, 'lo']);
  });

  it('is not taken in by a content that is another one', () => {
    const named = (content: string): Fields => ({ filter: { content: 'safe' }, ...chunk(content) });
    expect(textsOf(named('Hel'), named('lo'))).to.deep.equal([unknown, unknown]);
    const twice = (content: string): string =>
      JSON.stringify(chunk(content)).replace('"content":', '"content":"first","content":');
    expect(textsOf(twice('Hel'), twice('lo'))).to.deep.equal([unknown, unknown]);
    const nested = (content: string): Fields => ({ ...chunk(content), more: { obfuscation: 'a' } });
    expect(textsOf(nested('Hel'), nested('lo'))).to.deep.equal([unknown, unknown]);
  });

  it('takes no other content for its text', () => {
    const filtered = (content: string): Fields => ({ filter: { content }, ...chunk('same') });
    expect(textsOf(filtered('a'), filtered('b'))).to.deep.equal([unknown, unknown]);
    const escaped = (content: string): string => JSON.stringify(chunk(content)).replace('"content"', '"conten\\u0074"');
    expect(textsOf(escaped('Hel'), escaped('lo'))).to.deep.equal([unknown, unknown]);
    const twice = JSON.stringify(chunk('lo')).replace('"content":"lo"', '"content":"lo","content":"no"');
    expect(textsOf(chunk('Hel'), twice)).to.deep.equal([unknown, unknown]);
    expect(textsOf('null', '[]', '7', '"content"', 'null')).to.deep.equal(Array(5).fill(unknown));
  });

  it('compares all between the text and the padding, and all behind it', () => {
    const [ended, named] = [padded('lo', 'abc'), padded('lo', 'abc')];
    Object.assign((ended['choices'] as Fields[])[0] as Fields, { finish_reason: 'stop' });
    Object.assign(named, { model: 'm' });
    const more = JSON.stringify(padded('lo', 'abc')).replace('"abc"', '"abc","obfuscation":"abc"');
    const odd = JSON.stringify(padded('lo', 'abc')).replace('"logprobs":null', '"logprobs":true');
    for (const other of [ended, named, more, odd]) {
      expect(textsOf(padded('Hel', 'abc'), other, padded('lo', 'abc'))).to.deep.equal([unknown, unknown, unknown]);
    }
  });

  it('compares with the last chunk, and with no older one', () => {
    expect(textsOf(chunk('a'), chunk('b', { usage: { total_tokens: 3 } }), chunk('c'))).to.deep.equal([
      unknown,
      unknown,
      unknown,
    ]);
    const other = chunk('b', { id: 'c-2', usage: { total_tokens: 3 } });
    expect(textsOf(chunk('a'), other, chunk('c'), chunk('d'))).to.deep.equal([unknown, unknown, unknown, 'd']);
    const between = (content: string, n: number, padding: string): Fields =>
      chunk(content, { n, obfuscation: padding });
    expect(textsOf(between('a', 1, 'x'), between('b', 2, 'xy'))).to.deep.equal([unknown, unknown]);
  });

  it('gives up where each chunk is written in a way of its own', () => {
    const chunks = Array.from({ length: 30 }, (_, at) => chunk('a', { id: `c-${at}` }));
    expect(textsOf(...chunks, chunk('b'), chunk('c')).filter((text) => text !== unknown)).to.deep.equal([]);
  });

  it('tries five times, and once more for every two chunks that it knew', () => {
    const of = (id: number, content = 'a'): Fields => chunk(content, { id: `c-${id}` });
    const own = (from: number, count: number): Fields[] => Array.from({ length: count }, (_, i) => of(from + i));
    expect(textsOf(...own(0, 5), of(4, 'b')).at(-1)).to.equal('b');
    expect(textsOf(...own(0, 6), of(5, 'b')).at(-1)).to.equal(unknown);
    const knew = [of(0), of(0, 'b'), of(0, 'c')];
    expect(textsOf(...knew, ...own(1, 5), of(5, 'b')).at(-1)).to.equal('b');
    expect(textsOf(...knew, ...own(1, 6), of(6, 'b')).at(-1)).to.equal(unknown);
  });

  it('learns again after each change where most chunks are alike', () => {
    const runs = Array.from({ length: 30 }, (_, at) =>
      ['a', 'b', 'c', 'd'].map((text) => chunk(text, { id: `c-${at}` })),
    );
    expect(textsOf(...runs.flat()).filter((text) => text !== unknown)).to.have.length(90);
  });

  it('says of no chunk what the parser would not say', () => {
    const text = fc.oneof(
      fc.string({ unit: 'binary' }),
      fc.constantFrom('', '"', '\\', 'content', '"content":"x"', '\n'),
    );
    const aChunk = fc.tuple(text, text, fc.constantFrom('c-1', 'c-1', 'c-1', 'c-2'), fc.boolean());
    fc.assert(
      fc.property(fc.array(aChunk, { maxLength: 12 }), (made) => {
        const repeated = new RepeatedChunk();
        let last: Fields = {};
        for (const [content, obfuscation, id, padding] of made) {
          const value = chunk(content, { id, ...(padding && { obfuscation }) });
          const data = JSON.stringify(value);
          const known = repeated.textOf(data);
          if (known === undefined) repeated.learn(data, value);
          else {
            expect(known).to.equal(content);
            expect(JSON.stringify(repeated.mould?.cast(data, known))).to.equal(data);
            const before: Fields = { ...last, choices: value['choices'] };
            delete before['obfuscation'];
            expect({ ...value, obfuscation: undefined }).to.deep.equal({ ...before, obfuscation: undefined });
          }
          last = value;
        }
      }),
    );
  });
});
