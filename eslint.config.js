import eslint from '@eslint/js';
import rxjs from 'eslint-plugin-rxjs-x';
import { defineConfig, globalIgnores } from 'eslint/config';
import tseslint from 'typescript-eslint';

const viaRuntime = 'Time, waiting and randomness come from the Runtime that is passed in (core/runtime.ts).';

const noDefaultExports = [
  { selector: 'ExportDefaultDeclaration', message: 'Named exports only.' },
  { selector: 'ExportSpecifier[exported.name="default"]', message: 'Named exports only.' },
  { selector: 'ExportAllDeclaration', message: 'List each export by name.' },
];

const toOldSpace = {
  selector:
    'AssignmentExpression[left.type="MemberExpression"]:matches([right.type="ArrowFunctionExpression"], [right.type="FunctionExpression"])',
  message: 'V8 makes such a function in old space, from where it keeps all it refers to. Give it to a constant first.',
};

const bannedGlobals = ['setTimeout', 'setInterval', 'setImmediate', 'performance'].map((name) => ({
  name,
  message: viaRuntime,
}));
const bannedDate = { name: 'Date', message: viaRuntime };
const bannedConsole = { name: 'console', message: 'Report a fact through onEvent; only the edges print.' };

const bannedProperties = [
  { object: 'Math', property: 'random', message: viaRuntime },
  { object: 'process', property: 'hrtime', message: viaRuntime },
  ...['Date', 'setTimeout', 'setInterval', 'setImmediate', 'performance', 'console'].map((property) => ({
    object: 'globalThis',
    property,
    message: viaRuntime,
  })),
];

const bannedImports = {
  paths: [
    ...['timers', 'timers/promises', 'perf_hooks'].flatMap((name) => [
      { name, message: viaRuntime },
      { name: `node:${name}`, message: viaRuntime },
    ]),
  ],
  patterns: [{ group: ['rxjs/internal', 'rxjs/internal/*', 'rxjs/operators'], message: "Import from 'rxjs'." }],
};

/** The parts that may read clocks, wait and print. */
const edges = [
  'lib/core/runtime.ts',
  'lib/testing/**',
  'lib/emulator/*.ts',
  'lib/cli/**',
  'lib/http/**',
  'lib/stores/**',
];

export default defineConfig(
  globalIgnores(['**/node_modules/', 'dist/', 'coverage/', 'temp/', 'reports/', 'spec/fixtures/']),
  eslint.configs.recommended,
  {
    files: ['**/*.ts'],
    ignores: ['spec/clients/**', 'spec/bench/**', 'spec/mutation/**'],
    extends: [tseslint.configs.strictTypeChecked, rxjs.configs.recommended],
    languageOptions: {
      parserOptions: { project: ['tsconfig.json', 'spec/tsconfig.json'], tsconfigRootDir: import.meta.dirname },
    },
    rules: {
      'no-restricted-syntax': ['error', ...noDefaultExports],
      'no-restricted-imports': ['error', { patterns: bannedImports.patterns }],
      '@typescript-eslint/consistent-type-imports': 'error',
      '@typescript-eslint/consistent-type-exports': 'error',
      '@typescript-eslint/switch-exhaustiveness-check': ['error', { considerDefaultExhaustiveForUnions: true }],
      // Arrow functions that pass on a void result, and numbers in messages, are the house style.
      '@typescript-eslint/no-confusing-void-expression': 'off',
      '@typescript-eslint/no-meaningless-void-operator': 'off',
      '@typescript-eslint/restrict-template-expressions': ['error', { allowNumber: true, allowBoolean: true }],
      // `catch {}` and empty callbacks say what they are by being empty.
      '@typescript-eslint/no-empty-function': 'off',
      'no-empty': ['error', { allowEmptyCatch: true }],
      '@typescript-eslint/no-unused-vars': ['error', { argsIgnorePattern: '^_', ignoreRestSiblings: true }],
      // Also fires for `for (;;)` conditions and for narrowing that a callback has undone since.
      '@typescript-eslint/no-unnecessary-condition': 'off',
      // Overloads are read by people, and some inference needs them apart.
      '@typescript-eslint/unified-signatures': 'off',
      // isolatedDeclarations asks for `Infinity as number`, which this rule takes away.
      '@typescript-eslint/no-unnecessary-type-assertion': 'off',
      // A type parameter used once is how RxJS operators spell their inference.
      '@typescript-eslint/no-unnecessary-type-parameters': 'off',
      // Errors of the source are passed on as they came.
      '@typescript-eslint/only-throw-error': ['error', { allowThrowingUnknown: true }],
      'rxjs-x/throw-error': ['error', { allowThrowingAny: false, allowThrowingUnknown: true }],
      '@typescript-eslint/prefer-promise-reject-errors': ['error', { allowThrowingUnknown: true }],
      'rxjs-x/no-exposed-subjects': 'error',
      'rxjs-x/no-subclass': 'error',
    },
  },
  {
    files: ['lib/**/*.ts'],
    rules: { 'no-restricted-syntax': ['error', ...noDefaultExports, toOldSpace] },
  },
  {
    files: ['lib/**/*.ts'],
    ignores: edges,
    rules: {
      'no-restricted-globals': ['error', ...bannedGlobals, bannedDate, bannedConsole],
      'no-restricted-properties': ['error', ...bannedProperties],
      'no-restricted-imports': ['error', bannedImports],
    },
  },
  {
    // HTTP dates are parsed here: a pure use of Date. What reads the clock stays banned.
    files: ['lib/wire/**/*.ts'],
    rules: {
      'no-restricted-globals': ['error', ...bannedGlobals, bannedConsole],
      'no-restricted-properties': [
        'error',
        ...bannedProperties,
        { object: 'Date', property: 'now', message: viaRuntime },
      ],
      'no-restricted-syntax': [
        'error',
        ...noDefaultExports,
        toOldSpace,
        { selector: 'NewExpression[callee.name="Date"][arguments.length=0]', message: viaRuntime },
        { selector: 'CallExpression[callee.name="Date"]', message: viaRuntime },
      ],
    },
  },
  {
    files: ['spec/**/*.ts'],
    rules: {
      // chai's `expect(x).to.be.true`.
      '@typescript-eslint/no-unused-expressions': 'off',
      '@typescript-eslint/no-non-null-assertion': 'off',
      '@typescript-eslint/require-await': 'off',
      '@typescript-eslint/unbound-method': 'off',
      // Marbles are spread into characters, and requests of users hold deprecated fields.
      '@typescript-eslint/no-misused-spread': 'off',
      '@typescript-eslint/no-deprecated': 'off',
      // `(error: SluiceError) => ...` in a test: what else comes fails it.
      'rxjs-x/no-implicit-any-catch': 'off',
      'rxjs-x/no-ignored-notifier': 'off',
      'rxjs-x/no-nested-subscribe': 'off',
    },
  },
  {
    files: ['spec/clients/**/*.ts', 'spec/bench/**/*.ts', 'spec/mutation/**/*.ts'],
    extends: [tseslint.configs.strict],
    rules: { '@typescript-eslint/no-unused-expressions': 'off', '@typescript-eslint/no-non-null-assertion': 'off' },
  },
  {
    files: ['**/*.{js,mjs}'],
    rules: { 'no-restricted-syntax': 'off' },
    languageOptions: { globals: { process: 'readonly', console: 'readonly' } },
  },
  {
    // What browsers run.
    files: ['lib/http/live/page/*.js', 'lib/simulator/report/page/*.js', 'examples/chat-page/*.js'],
    languageOptions: {
      globals: Object.fromEntries(
        [
          ...['document', 'window', 'location', 'sessionStorage', 'EventSource', 'ResizeObserver', 'fetch'],
          ...['matchMedia', 'getComputedStyle', 'requestAnimationFrame', 'performance', 'crypto'],
          ...['setTimeout', 'clearTimeout', 'setInterval', 'AbortController', 'TextDecoder', 'URL'],
        ].map((name) => [name, 'readonly']),
      ),
    },
  },
  {
    files: ['**/*.cjs'],
    languageOptions: {
      sourceType: 'commonjs',
      globals: { require: 'readonly', module: 'writable', process: 'readonly', console: 'readonly' },
    },
  },
);
