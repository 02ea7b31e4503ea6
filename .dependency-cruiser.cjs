'use strict';

/**
 * Which parts and packages each part of lib/ may import; every part may import itself. `types` are packages that may be
 * named by `import type` only, so that nothing of them is loaded.
 */
const RULES = {
  core: { parts: [], packages: [], types: ['rxjs'] },
  limits: { parts: ['core'], packages: [] },
  wire: { parts: ['core'], packages: [] },
  sources: { parts: ['core', 'wire'], packages: ['rxjs'], types: ['openai'] },
  operators: { parts: ['core', 'limits', 'wire'], packages: ['rxjs'], types: ['openai'] },
  policy: { parts: ['core', 'limits'], packages: ['zod', 'yaml'], node: ['fs'] },
  client: {
    parts: ['core', 'limits', 'wire', 'sources', 'operators', 'policy'],
    packages: ['rxjs'],
    types: ['openai'],
  },
  telemetry: { parts: ['core'], packages: ['rxjs', '@opentelemetry/[^/]+'], node: ['events', 'http', 'net'] },
  http: {
    parts: ['core', 'wire', 'sources', 'operators', 'client', 'policy', 'telemetry'],
    packages: ['rxjs', 'undici'],
    types: ['openai'],
    node: true,
  },
  stores: { parts: ['core', 'limits'], packages: ['rxjs'], types: ['redis', 'ioredis'], node: true },
  'emulator/model': { parts: ['core', 'limits'], packages: [] },
  emulator: { parts: ['core', 'limits', 'emulator/model'], packages: [], node: true },
  simulator: {
    parts: ['core', 'limits', 'wire', 'sources', 'operators', 'policy', 'client', 'emulator/model', 'testing'],
    packages: ['rxjs', 'zod', 'csv-parse'],
    types: ['openai'],
    node: ['crypto', 'fs', 'module', 'path'],
  },
  testing: { parts: ['core'], packages: ['rxjs'] },
};

/** The entry point `sluice/operators` lists what is in the parts below it. */
const LISTS = {
  'lib/operators/index\\.ts': ['core', 'limits', 'wire', 'sources', 'operators'],
  'lib/index\\.ts': ['core', 'limits', 'wire', 'sources', 'operators', 'client', 'policy'],
};

const folder = (part) => `^lib/${part}/`;
const anyOf = (names) => `(${names.join('|')})`;
const inPackages = (names) => `(^|/)node_modules/${anyOf(names)}/`;

function rulesOf(part, { parts, packages, types = [], node = false }) {
  // emulator/model is a part within the folder of another.
  const inner = Object.keys(RULES)
    .filter((other) => other.startsWith(`${part}/`))
    .map(folder);
  const lists = Object.keys(LISTS).map((file) => `^${file}$`);
  const from = { path: folder(part), pathNot: [...inner, ...lists] };
  const own = [part, ...parts].map(folder);
  return [
    {
      name: `${part}-imports`,
      severity: 'error',
      comment: `lib/${part} may import ${['itself', ...parts].join(', ')} only`,
      from,
      to: { path: '^lib/', pathNot: own },
    },
    {
      name: `${part}-packages`,
      severity: 'error',
      comment: `lib/${part} may load ${packages.join(', ') || 'no packages'}${types.length ? ` and name types of ${types.join(', ')}` : ''}`,
      from,
      to: {
        path: 'node_modules/',
        ...(packages.length + types.length > 0 && { pathNot: inPackages([...packages, ...types]) }),
      },
    },
    ...types.map((name) => ({
      name: `${part}-types-of-${name}`,
      severity: 'error',
      comment: `lib/${part} may name ${name} by \`import type\` only`,
      from,
      to: { path: inPackages([name]), dependencyTypesNot: ['type-only'] },
    })),
    ...(node === true
      ? []
      : [
          {
            name: `${part}-node`,
            severity: 'error',
            comment: `lib/${part} may not use ${node === false ? 'modules of Node' : `other modules of Node than ${node.join(', ')}`}`,
            from,
            to: { dependencyTypes: ['core'], ...(node !== false && { pathNot: `^(node:)?${anyOf(node)}(/|$)` }) },
          },
        ]),
  ];
}

module.exports = {
  forbidden: [
    { name: 'no-circular', severity: 'error', from: {}, to: { circular: true } },
    {
      name: 'resolvable',
      severity: 'error',
      comment: 'an import leads nowhere',
      // Scripts of the page name addresses of its server.
      from: { pathNot: '^lib/http/live/page/' },
      to: { couldNotResolve: true },
    },
    {
      name: 'known-parts',
      severity: 'error',
      comment: 'a part of lib/ without a rule: name it in .dependency-cruiser.cjs',
      from: { path: '^lib/[^/]+/', pathNot: folder(anyOf([...Object.keys(RULES), 'cli'])) },
      to: {},
    },
    {
      name: 'nobody-imports-cli',
      severity: 'error',
      from: { pathNot: folder('cli') },
      to: { path: folder('cli') },
    },
    {
      name: 'not-from-the-lists',
      severity: 'error',
      comment: 'import the file itself: the lists are for users',
      from: { path: '^lib/', pathNot: folder('cli') },
      to: { path: '/index\\.ts$', pathNot: 'node_modules/' },
    },
    {
      name: 'nothing-from-outside-lib',
      severity: 'error',
      from: { path: '^lib/', pathNot: '^lib/cli/' },
      to: { pathNot: ['^lib/', 'node_modules/'], dependencyTypes: ['local', 'localmodule', 'aliased'] },
    },
    ...Object.entries(LISTS).map(([file, parts]) => ({
      name: `${file.replace('\\', '')}-lists`,
      severity: 'error',
      comment: `lists ${parts.join(', ')} only`,
      from: { path: `^${file}$` },
      to: { pathNot: parts.map(folder) },
    })),
    ...Object.entries(RULES).flatMap(([part, rule]) => rulesOf(part, rule)),
  ],
  options: {
    tsPreCompilationDeps: true,
    tsConfig: { fileName: 'tsconfig.json' },
    doNotFollow: { path: 'node_modules' },
    enhancedResolveOptions: {
      exportsFields: ['exports'],
      conditionNames: ['import', 'require', 'node', 'default', 'types'],
    },
  },
};
