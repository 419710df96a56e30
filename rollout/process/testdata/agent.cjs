const early = require("./early.cjs");

const cached = Object.keys(require.cache).map((file) => file.split("/").pop()).sort();
console.log(require.main === module, process.mainModule === module, cached.join(), early.state.join(), process.env.EXTRA);
