exports.state = ["common"];
