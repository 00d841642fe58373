import js from "@eslint/js";
import globals from "globals";

export default [
  { ignores: [".venv/", "build/", "dist/", ".clients/", ".s3/"] },
  js.configs.recommended,
  {
    rules: {
      eqeqeq: ["error", "always", { null: "ignore" }],
      "no-unused-vars": ["error", { argsIgnorePattern: "^_", varsIgnorePattern: "^_" }],
      "no-var": "error",
      "prefer-const": ["error", { destructuring: "all" }],
      "max-lines": ["error", 400],
      "max-lines-per-function": ["error", 55],
    },
  },
  { files: ["plain_app/**/*.js"], languageOptions: { globals: globals.browser } },
  { files: ["tests/js/**", "*.js"], languageOptions: { globals: { ...globals.node, ...globals.browser } } },
];
